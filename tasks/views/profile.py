"""A person's own preferences."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from tasks import access
from tasks.forms import ProfileForm
from tasks.models import OperatorProfile
from tasks.views.answer import answer


@require_http_methods(["GET", "HEAD", "POST"])
@access.holds(access.VIEW)
def profile(request: HttpRequest) -> HttpResponse:
    """Time zone, language, theme: show and save. It changes only how the console looks, so it leaves no audit row."""
    assert isinstance(request.user, User)  # noqa: S101 - the door let nobody else in
    mine = OperatorProfile.objects.filter(user=request.user).first() or OperatorProfile(user=request.user)
    form = ProfileForm(request.POST or None, instance=mine)
    if request.method == "POST" and form.is_valid():
        form.save()
        return answer(request, _("Saved."), back=reverse("profile"), go=True)
    status = 422 if form.errors else 200
    return render(request, "tasks/profile.html", {"form": form}, status=status)
