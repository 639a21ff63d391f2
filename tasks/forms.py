"""Forms of the console."""

from __future__ import annotations

from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from tasks.models import OperatorProfile


def zones() -> list[tuple[str, str]]:
    """Every zone this machine knows, UTC first."""
    return [("UTC", "UTC"), *((name, name) for name in sorted(available_timezones()) if "/" in name)]


class ProfileForm(forms.ModelForm):  # type: ignore[type-arg]
    """How one person likes the console."""

    time_zone = forms.ChoiceField(
        label=_("Time zone"), choices=zones, help_text=_("All times are shown in it; they are stored in UTC.")
    )
    language = forms.ChoiceField(
        label=_("Language"),
        required=False,
        choices=lambda: [("", _("as the browser asks")), *settings.LANGUAGES],
    )

    class Meta:
        model = OperatorProfile
        fields = ("time_zone", "language", "theme")
        labels = {"theme": _("Theme")}  # noqa: RUF012 - Django's own way

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if len(settings.LANGUAGES) == 1:
            del self.fields["language"]
