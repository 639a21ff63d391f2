"""Kinds: what sort of work there is, and the versions of its prompt."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tasks.admin.base import ConfigurationAdmin, ReadOnly, complain
from tasks.llm.prompt import check_schema, check_template
from tasks.models import Kind, PromptVersion
from tasks.views import why

STORED = gettext_lazy("Stored and shown; the engine does not use them yet.")


class KindForm(forms.ModelForm):  # type: ignore[type-arg]
    """A kind whose templates, schema and waits work."""

    class Meta:
        widgets = {  # noqa: RUF012 - Django's own form
            "system_prompt": forms.Textarea(attrs={"rows": 8, "cols": 80}),
            "prompt": forms.Textarea(attrs={"rows": 14, "cols": 80}),
        }

    def clean_output_schema(self) -> Any:
        """A JSON Schema that answers can be checked against."""
        schema = self.cleaned_data["output_schema"]
        if schema is not None:
            try:
                check_schema(json.dumps(schema))
            except ValueError as error:
                complain(self, "output_schema", error)
        return schema

    def clean_system_prompt(self) -> str:
        """A template that compiles."""
        return self._template("system_prompt")

    def clean_prompt(self) -> str:
        """A template that compiles."""
        return self._template("prompt")

    def clean(self) -> dict[str, Any] | None:
        """What the fields must be together."""
        cleaned = super().clean()
        if not self.cleaned_data.get("handler"):
            for name in ("provider", "model", "prompt"):
                if name in self.cleaned_data and not self.cleaned_data[name]:
                    complain(self, name, _("a kind without a handler is run by its prompt and needs this"))
        check_waits(self)
        return cleaned

    def _template(self, name: str) -> str:
        text: str = self.cleaned_data[name]
        try:
            check_template(text)
        except ValueError as error:
            complain(self, name, _("no usable template: %s") % error)
        return text


def check_waits(form: forms.BaseForm) -> None:
    """Refuse a longest wait that is shorter than the first."""
    first = form.cleaned_data.get("initial_interval_seconds")
    longest = form.cleaned_data.get("maximum_interval_seconds")
    if first is not None and longest is not None and longest < first:
        complain(form, "maximum_interval_seconds", _("the longest wait is shorter than the first"))


@admin.register(Kind)
class KindAdmin(ConfigurationAdmin):
    """Each sort of work: where it runs, what it sends, how it is retried. Pause and resume are the console's."""

    form = KindForm
    more_help = MappingProxyType(
        {
            "name": gettext_lazy("Stable: code and submitters call the work by it."),
            "provider": gettext_lazy("Where the calls go. Tasks that have not started move along when it changes."),
            "temperature": gettext_lazy("0: always the likeliest word. Empty: the provider's default."),
            "max_output_tokens": gettext_lazy("A longer answer is cut and fails. Empty: the provider's default."),
            "max_attempts": gettext_lazy("The budget: attempts that failed count, snoozes and lost workers do not."),
            "initial_interval_seconds": gettext_lazy("Before the first retry; an error code may say otherwise."),
            "backoff_coefficient": gettext_lazy("Each wait is this many times the one before."),
            "maximum_interval_seconds": gettext_lazy("No wait is longer, whatever the number of attempts."),
            "timeout_seconds": gettext_lazy("A call that takes longer is aborted and counts as failed."),
            "priority": gettext_lazy("-100 to 100, higher first. A task may be submitted with its own."),
        }
    )
    list_display = ("name", "runs", "provider", "model", "max_attempts", "state")
    list_select_related = ("provider", "prompt_version")
    list_filter = ("provider",)
    search_fields = ("name", "handler", "model")
    fieldsets = (
        (None, {"fields": ("name", "handler", "subject", "state")}),
        (gettext_lazy("Model"), {"fields": ("provider", "model", "temperature", "max_output_tokens", "stream")}),
        (
            gettext_lazy("Prompt and answer"),
            {
                "description": gettext_lazy(
                    "A change of prompt, schema or model makes a new version; attempts keep the one they sent."
                ),
                "fields": ("system_prompt", "prompt", "output_schema", "max_repairs", "versions"),
            },
        ),
        (
            gettext_lazy("Attempts and waits"),
            {
                "fields": (
                    "max_attempts",
                    "initial_interval_seconds",
                    "backoff_coefficient",
                    "maximum_interval_seconds",
                    "jitter",
                )
            },
        ),
        (gettext_lazy("Time and order"), {"fields": ("timeout_seconds", "deadline_seconds", "priority")}),
        (gettext_lazy("When a worker vanishes"), {"fields": ("safe_to_rerun",)}),
        (
            gettext_lazy("Not used yet"),
            {
                "description": STORED,
                "classes": ("collapse",),
                "fields": (
                    "backup_provider",
                    "backup_model",
                    "stall_seconds",
                    "concurrency_limit",
                    "fallback_result",
                ),
            },
        ),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Kind | None = None) -> tuple[str, ...]:
        """A name is a key that tasks and code carry, so it stays."""
        return ("state", "versions", "name") if obj else ("state", "versions")

    @admin.display(description=gettext_lazy("runs"))
    def runs(self, obj: Kind) -> str:
        """By which handler, or which version of the prompt."""
        if not obj.is_prompt:
            return _("handler %s") % obj.handler
        return _("prompt v%d") % obj.prompt_version.number if obj.prompt_version else _("prompt")

    @admin.display(description=gettext_lazy("state"))
    def state(self, obj: Kind) -> str:
        """Whether its tasks are claimed, with the way to change that."""
        if obj.paused_at:
            return format_html('{} <a href="{}">{}</a>', why.paused(obj), reverse("kinds"), _("Resume it"))
        return _("Its tasks are run.")

    @admin.display(description=gettext_lazy("versions"))
    def versions(self, obj: Kind) -> str:
        """The current version, with the way to all of them."""
        if not obj.prompt_version:
            return _("None yet.")
        url = reverse(f"{self.admin_site.name}:tasks_promptversion_changelist")
        return format_html(
            '{} <a href="{}?{}">{}</a>',
            _("Version %d is in use.") % obj.prompt_version.number,
            url,
            urlencode({"kind__name__exact": obj.name}),
            _("All versions"),
        )

    def in_use(self, obj: Kind) -> str:
        """A kind that has tasks stays: they are its history."""
        if not obj.tasks.exists():
            return ""
        return _(
            "Kind %(name)s has tasks and cannot be deleted: they would lose what they are. Pause it on the page of"
            " kinds if nothing of it should run any more."
        ) % {"name": obj.name}


@admin.register(PromptVersion)
class PromptVersionAdmin(ReadOnly):
    """What attempts were told to send; never changed once made."""

    list_display = ("kind", "number", "model", "created_at")
    list_select_related = ("kind",)
    list_filter = ("kind",)
    fields = ("kind", "number", "model", "system_prompt", "prompt", "schema", "created_at")
    readonly_fields = ("schema",)

    @admin.display(description=gettext_lazy("schema of the answer"))
    def schema(self, obj: PromptVersion) -> str:
        """Indented, as it was written."""
        return "–" if obj.output_schema is None else json.dumps(obj.output_schema, ensure_ascii=False, indent=2)
