"""What every page of the configuration does: asks for one permission, saves what was changed, writes the audit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.contrib.admin.widgets import AdminSplitDateTime, RelatedFieldWidgetWrapper
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import ProtectedError, RestrictedError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _

from tasks import audit
from tasks.access import CONFIGURE
from tasks.configuration.values import read_json
from tasks.errors import mask_secrets
from tasks.models.ranges import Within

#: Longest old or new value that an audit row repeats.
SHOWN_CHARACTERS = 300
#: How a filter in an address may compare.
FILTERED_BY = frozenset({"", "exact", "isnull", "gte", "lt"})


class Audited(admin.ModelAdmin):  # type: ignore[type-arg]
    """Each change by a person writes an audit row, in the transaction of the change: who, what, old and new values."""

    #: Whether the row repeats values; names of the changed fields alone where they may be secret.
    audit_values = True

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """The two inputs of a point in time with a name each: Django's words beside them are no labels."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and isinstance(field.widget, AdminSplitDateTime):
            for part, name in zip(field.widget.widgets, (_("date"), _("time")), strict=True):
                part.attrs["aria-label"] = f"{field.label}: {name}"
        return field

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Django's own rule, and no more than the filters beside a list ask for.

        Django lets an address ask for anything of a model's own columns: a pattern would keep the database busy, and
        a value that the lookup cannot take would be a failure of ours.
        """
        asked = lookup.partition("__")[2].rpartition("__")[2]
        return asked in FILTERED_BY and super().lookup_allowed(lookup, value, request)

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> Any:
        """Note what the form changes, for the audit row that follows."""
        obj = super().save_form(request, form, change)
        obj.audited_changes = _changes(form) if self.audit_values and change else {}
        return obj

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Django's own history, and an audit row."""
        self._audit(request, "add", obj, {})
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Django's own history, and an audit row unless nothing was changed."""
        if message:
            self._audit(request, "change", obj, {"message": message, "changes": getattr(obj, "audited_changes", {})})
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: Iterable[Any]) -> Any:
        """Django's own history, and an audit row for each object."""
        objects = list(queryset)
        for obj in objects:
            self._audit(request, "delete", obj, {})
        return super().log_deletions(request, objects)  # type: ignore[arg-type]

    def _audit(self, request: HttpRequest, action: str, obj: Any, data: dict[str, Any]) -> None:
        audit.record(
            request.user,
            f"{action}_{self.opts.verbose_name_raw.lower().replace(' ', '_')}",
            target_type=str(self.opts.model_name),
            target_id=obj.pk,
            data={"object": str(obj), **data},
        )


class ConfigurationAdmin(Audited):
    """Open to ``tasks.configure``, without permissions on each model; saves the changed fields and no others."""

    #: What the models' own help texts leave open.
    more_help: Mapping[str, str | Promise] = MappingProxyType({})

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Each setting with its explanation; JSON as people write it; no deleting from within another page."""
        if isinstance(db_field, models.JSONField):
            kwargs["form_class"] = JSONTextField
        if db_field.name in self.more_help:
            kwargs["help_text"] = self.more_help[db_field.name]
        if any(isinstance(validator, Within) for validator in db_field.validators):
            kwargs["min_value"] = None  # its own sentence names both ends; Django's would come before it
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        widget = getattr(field, "widget", None)
        if isinstance(widget, RelatedFieldWidgetWrapper):
            widget.can_delete_related = False
        return field

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whoever may configure."""
        return request.user.has_perm(CONFIGURE)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whoever may configure."""
        return request.user.has_perm(CONFIGURE)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Whoever may configure."""
        return request.user.has_perm(CONFIGURE)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whoever may configure."""
        return request.user.has_perm(CONFIGURE)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whoever may configure; what is in use is refused by ``delete_view``, with a sentence."""
        return request.user.has_perm(CONFIGURE)

    def in_use(self, obj: Any) -> str:
        """Why the object cannot be deleted, as a sentence; empty where it can."""
        return ""

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """The object; locked while it is saved, so that two people's changes come one after the other."""
        obj = super().get_object(request, object_id, from_field)
        if obj is None or request.method != "POST":
            return obj
        return self.model._default_manager.select_for_update(no_key=True).filter(pk=obj.pk).first()

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save what the form changed: a pause or a hold that came meanwhile is not undone."""
        if not change:
            obj.save(force_insert=True)
        elif fields := [*form.changed_data, *self.derived_fields(obj, form)]:
            obj.save(update_fields=[*dict.fromkeys([*fields, *_stamps(obj)])])

    def derived_fields(self, obj: Any, form: Any) -> Sequence[str]:
        """Set what follows from the change; the names of the fields that this set."""
        return ()

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Without the bulk delete, which would ask nobody whether a row is in use."""
        actions: dict[str, Any] = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Django's question before a delete; what is in use gets a sentence instead."""
        obj = super().get_object(request, unquote(object_id), None)
        if obj is not None and self.has_delete_permission(request, obj) and (why := self.in_use(obj)):
            return self._refuse_delete(request, obj, why)
        try:
            return super().delete_view(request, object_id, extra_context)
        except (ProtectedError, RestrictedError):
            # It came into use between the question and the answer.
            return self._refuse_delete(request, obj, self.in_use(obj) or _("It is in use and cannot be deleted."))

    def _refuse_delete(self, request: HttpRequest, obj: Any, why: str) -> HttpResponseRedirect:
        messages.error(request, why)
        name = f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_change"
        return HttpResponseRedirect(reverse(name, args=[quote(obj.pk)]))

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """What a delete takes along. Not Django's walk over all relations, which would list a million tasks."""
        shown = [str(obj) for obj in objs]
        return shown, {str(self.opts.verbose_name_plural): len(shown)}, set(), []


class ReadOnly(ConfigurationAdmin):
    """Rows that are shown and never changed."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody."""
        return False


class JSONTextField(forms.JSONField):
    """JSON as people write it: indented, and refused with the reason where the database could not store it."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs["widget"] = forms.Textarea(attrs={"rows": 10, "cols": 80, "spellcheck": "false"})
        super().__init__(**kwargs)

    def to_python(self, value: Any) -> Any:
        """The value of the text. Raises ValidationError with what is wrong with it."""
        if value in self.empty_values or not isinstance(value, str):
            return None if value in self.empty_values else value
        try:
            return read_json(value)
        except ValueError as error:
            raise ValidationError(f"{str(error)[:1].upper()}{str(error)[1:]}.") from error

    def prepare_value(self, value: Any) -> Any:
        """The text of the value, indented; what a person typed wrongly is given back as it was."""
        if isinstance(value, forms.fields.InvalidJSONInput) or value is None:
            return value
        return json.dumps(value, ensure_ascii=False, indent=2)

    def bound_data(self, data: Any, initial: Any) -> Any:
        """What was typed."""
        if self.disabled:
            return initial
        try:
            return None if data is None else read_json(data)
        except ValueError:
            return forms.fields.InvalidJSONInput(data)


def complain(form: forms.BaseForm, field: str, sentence: object) -> None:
    """Put a sentence on a field of the form; on the form itself where it has no such field."""
    text = str(sentence)
    form.add_error(field if field in form.fields else None, f"{text[:1].upper()}{text[1:].rstrip('.')}.")


def _changes(form: Any) -> dict[str, list[str]]:
    """Old and new value of each changed field, as text, cut, without secrets."""
    old: Mapping[str, Any] = form.initial
    return {name: [_shown(old.get(name)), _shown(form.cleaned_data.get(name))] for name in form.changed_data}


def _shown(value: Any) -> str:
    if isinstance(value, models.Model):
        value = value.pk
    text = mask_secrets("" if value is None else value if isinstance(value, str) else str(value))
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"


def _stamps(obj: models.Model) -> list[str]:
    return [field.name for field in obj._meta.concrete_fields if getattr(field, "auto_now", False)]
