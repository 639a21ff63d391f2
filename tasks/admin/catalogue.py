"""The error catalogue: codes, and the rules that operators put before the built-in ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from tasks import audit
from tasks.admin.base import ConfigurationAdmin, complain
from tasks.admin.kind import check_waits
from tasks.catalogue_rows import builtin_fields
from tasks.errors import Rule, RuleError
from tasks.errors.codes import CODES
from tasks.models import ErrorCode, ErrorRule

_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
CONDITIONS = ("exception", "cause", "http_status", "message", "body", "provider", "kind")


class ErrorCodeForm(forms.ModelForm):  # type: ignore[type-arg]
    """A code whose name is one word and whose waits are in order."""

    def clean_code(self) -> str:
        """One word."""
        code: str = self.cleaned_data["code"]
        if not _CODE.match(code):
            raise forms.ValidationError(_("Letters, digits and underscores only, a letter first."))
        return code

    def clean(self) -> dict[str, Any] | None:
        """Waits in order."""
        cleaned = super().clean()
        check_waits(self)
        return cleaned


@admin.register(ErrorCode)
class ErrorCodeAdmin(ConfigurationAdmin):
    """What each error code means and what follows from it. An upgrade leaves the fields changed here alone."""

    form = ErrorCodeForm
    more_help = MappingProxyType(
        {
            "code": gettext_lazy("One word of letters, digits and underscores, as failures carry it."),
            "title": gettext_lazy("One line for lists."),
            "cause": gettext_lazy("Whose fault it is: the network's, the provider's, the input's or the model's."),
            "initial_interval_seconds": gettext_lazy("Empty: the kind's."),
            "backoff_coefficient": gettext_lazy("Each wait is this many times the one before. Empty: the kind's."),
            "maximum_interval_seconds": gettext_lazy("Empty: the kind's."),
            "action": gettext_lazy("The name of what is done about it by itself."),
            "next_step": gettext_lazy("One sentence for whoever reads a letter with this code."),
        }
    )
    list_display = ("code", "title", "level", "retryable", "changed")
    list_filter = ("level", "cause", "retryable", "builtin")
    search_fields = ("code", "title", "user_message")
    actions = ("set_back",)
    fieldsets = (
        (None, {"fields": ("code", "title", "level", "cause", "changed")}),
        (
            gettext_lazy("Retry"),
            {
                "fields": (
                    "retryable",
                    "uses_budget",
                    "max_attempts",
                    "initial_interval_seconds",
                    "backoff_coefficient",
                    "maximum_interval_seconds",
                )
            },
        ),
        (gettext_lazy("Provider"), {"fields": ("cools_provider", "holds_provider")}),
        (gettext_lazy("People"), {"fields": ("action", "user_message", "runbook", "next_step")}),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: ErrorCode | None = None) -> tuple[str, ...]:
        """The code is what failures are stored with, so it stays."""
        return ("changed", "code") if obj else ("changed",)

    @admin.display(description=gettext_lazy("changed by operators"))
    def changed(self, obj: ErrorCode) -> str:
        """Which fields differ from the built-in code."""
        if not obj.builtin:
            return _("a code of your own")
        return ", ".join(obj.changed_fields) or "–"

    def derived_fields(self, obj: ErrorCode, form: Any) -> Sequence[str]:
        """What differs from the built-in code is the operator's; a field set back belongs to upgrades again."""
        if obj.code not in CODES:
            return ()
        ours = builtin_fields(CODES[obj.code])
        obj.changed_fields = sorted(name for name, value in ours.items() if getattr(obj, name) != value)
        return ("changed_fields",)

    def in_use(self, obj: ErrorCode) -> str:
        """Built-in codes stay, and codes that rules give."""
        if obj.builtin:
            return _("%(code)s is built in and cannot be deleted; change what it does instead.") % {"code": obj.code}
        rules = obj.rules.count()
        if rules:
            return ngettext(
                "%(count)d rule gives %(code)s. Delete it or let it give another code first.",
                "%(count)d rules give %(code)s. Delete them or let them give another code first.",
                rules,
            ) % {"count": rules, "code": obj.code}
        return ""

    @admin.action(description=gettext_lazy("Set back to the built-in values"))
    def set_back(self, request: HttpRequest, queryset: QuerySet[ErrorCode]) -> None:
        """Undo every change of operators to the chosen built-in codes; own codes are left alone."""
        with transaction.atomic():
            rows = [row for row in queryset.select_for_update() if row.code in CODES and row.changed_fields]
            for row in rows:
                was = {name: str(getattr(row, name)) for name in row.changed_fields}
                for name, value in builtin_fields(CODES[row.code]).items():
                    setattr(row, name, value)
                row.changed_fields = []
                row.save()
                audit.record(
                    request.user, "set_back_error_code", target_type="errorcode", target_id=row.pk, data={"was": was}
                )
        messages.success(
            request,
            ngettext("%d code was set back.", "%d codes were set back.", len(rows)) % len(rows)
            if rows
            else _("None of these codes had been changed."),
        )


class ErrorRuleForm(forms.ModelForm):  # type: ignore[type-arg]
    """A rule that has a condition and whose patterns compile."""

    def _post_clean(self) -> None:
        """After the model's own checks, let the catalogue read the rule as it will when it asks it."""
        super()._post_clean()  # type: ignore[misc]
        if self.errors:
            return
        given = {name: getattr(self.instance, name) for name in CONDITIONS}
        try:
            Rule(code=self.instance.code_id, **given).check()
        except RuleError as error:
            field, _colon, rest = str(error).partition(": ")
            complain(self, *((field, rest) if field in CONDITIONS else ("", str(error))))


@admin.register(ErrorRule)
class ErrorRuleAdmin(ConfigurationAdmin):
    """When a failure gets which code: asked in order, before the built-in rules; the first that holds decides."""

    form = ErrorRuleForm
    more_help = MappingProxyType(
        {
            "code": gettext_lazy("The code that a failure gets when every condition given here holds."),
            "enabled": gettext_lazy("Off: the rule stays here and is not asked."),
            "note": gettext_lazy("Why it is here; for the next operator."),
        }
    )
    list_display = ("position", "code", "enabled", "conditions", "note")
    list_display_links = ("position", "code")
    list_select_related = ("code",)
    list_filter = ("enabled",)
    search_fields = ("code__code", "message", "exception", "note")
    fieldsets = (
        (None, {"fields": ("code", "position", "enabled", "note")}),
        (
            gettext_lazy("Conditions"),
            {
                "description": gettext_lazy(
                    "All that are given must hold. Patterns are RE2, found anywhere in the text; case does not count."
                ),
                "fields": CONDITIONS,
            },
        ),
    )

    @admin.display(description=gettext_lazy("conditions"))
    def conditions(self, obj: ErrorRule) -> str:
        """The conditions given, in one line."""
        given = [f"{name}: {getattr(obj, name)}" for name in CONDITIONS if getattr(obj, name)]
        return " · ".join(given)[:200]
