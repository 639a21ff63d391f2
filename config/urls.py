"""Every URL of the project."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from config.api import api
from tasks.api import metrics
from tasks.views import sign_in

urlpatterns: list[URLPattern | URLResolver] = [
    path("login/", sign_in.SignIn.as_view(), name="login"),
    path("logout/", sign_in.SignOut.as_view(), name="logout"),
    path("admin/", admin.site.urls),
    path("api/v1/", api.urls),
    # /healthz and /readyz: config.middleware.ProbeMiddleware
    path("metrics", metrics.metrics, name="metrics"),
    path("dead-letters/", include("deadletters.urls")),
    path("", include("tasks.urls")),
]

handler400 = "config.refusals.bad_request"
handler500 = "config.refusals.server_error"
