"""Sign in and out, with an audit row for each."""

from __future__ import annotations

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from tasks import audit
from tasks.views import sign_in_limit
from tasks.words import span


class SignIn(LoginView):
    """The door. Somebody who is signed in already is led on."""

    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        """Look at the password, unless this name was tried from there too often."""
        wait = sign_in_limit.seconds_to_wait(request)
        return self._refuse(wait) if wait else super().post(request, *args, **kwargs)

    def _refuse(self, wait: int) -> HttpResponse:
        sentence = _("Too many tries with this name. Wait %(time)s, then try again.") % {"time": span(wait)}
        form = AuthenticationForm(self.request, initial={"username": self.request.POST.get("username", "")[:150]})
        context = self.get_context_data(form=form, refusal=sentence)
        response: HttpResponse = self.response_class(
            self.request, self.get_template_names(), context, status=429, headers={"Retry-After": str(wait)}
        )
        return response

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Note who came in."""
        response = super().form_valid(form)
        sign_in_limit.forget(self.request)
        audit.record(self.request.user, "signed_in")
        return response


class SignOut(LogoutView):
    """POST only, as Django's."""

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        """Note who went out."""
        if request.user.is_authenticated:
            audit.record(request.user, "signed_out")
        return super().post(request, *args, **kwargs)
