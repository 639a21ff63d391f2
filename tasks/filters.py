"""A list's filter: the URL's parameters → a queryset → the URL's parameters. What a filter cannot read, it says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.forms import BoundField
from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from tasks.models import ErrorCode, Kind, OperatorAction, Provider
from tasks.models.ranges import HIGHEST_PRIORITY, LOWEST_PRIORITY
from tasks.querysets import TaskQuerySet
from tasks.states import Status
from tasks.words import word

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

AGE = re.compile(r"(?P<n>[1-9]\d{0,4})(?P<unit>[smhdw])\Z")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class MomentField(forms.Field):
    """A point in time: an age (``15m``, ``24h``, ``7d``) or a date, with or without time, in the operator's zone.

    A date alone means its first moment, or its last with ``end_of_day``.
    """

    def __init__(self, *, placeholder: str | Promise = "", end_of_day: bool = False, **kwargs: Any) -> None:
        hint = placeholder or _("24h, 7d, a date")
        kwargs.setdefault("widget", forms.TextInput(attrs={"placeholder": hint, "autocomplete": "off", "list": "ages"}))
        super().__init__(**kwargs)
        self._time_of_day = time.max if end_of_day else time.min

    def to_python(self, value: Any) -> datetime | None:
        """An aware datetime, or None for a blank. Raises ValidationError with a sentence."""
        text = str(value or "").strip()
        if not text:
            return None
        if age := AGE.match(text):
            return timezone.now() - timedelta(**{UNITS[age["unit"]]: int(age["n"])})
        try:
            moment = self._day(text) or parse_datetime(text)
        except ValueError:
            moment = None
        if moment is None:
            sentence = _("“%(value)s” is no time. Write 15m, 24h, 7d or 2026-01-31 14:00.")
            raise ValidationError(sentence, "invalid", {"value": text})
        return moment if timezone.is_aware(moment) else timezone.make_aware(moment)

    def _day(self, text: str) -> datetime | None:
        day = parse_date(text)
        return datetime.combine(day, self._time_of_day) if day else None


class OpenChoiceField(forms.ChoiceField):
    """A choice among suggestions: any other value is taken as well (a code that left the catalogue, say)."""

    def __init__(self, *, empty: str | Promise, suggest: Callable[[], Iterable[str]], **kwargs: Any) -> None:
        self._empty, self._suggest = empty, suggest
        super().__init__(choices=self._listed, **kwargs)

    def _listed(self, also: str = "") -> list[tuple[str, str | Promise]]:
        values = sorted({*self._suggest(), *([also] if also else [])})
        return [("", self._empty), *((value, value) for value in values)]

    def include(self, value: str) -> None:
        """List ``value`` too, so that a form sent again still holds it."""
        self.choices = lambda: self._listed(value)

    def valid_value(self, value: str) -> bool:
        """Every text."""
        return "\x00" not in value


@dataclass(frozen=True)
class Fault:
    """A value that was not understood: the id that its field names as its description, and a sentence."""

    id: str
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Chip:
    """One active filter as it is shown: its words, and the query string without it."""

    label: str
    value: str
    without: str


class FilterForm(forms.Form):
    """Base of every list's filter: a GET form whose fields are all optional.

    ``main`` names the fields always in sight, ``more`` those behind “More filters”; other fields are carried as
    hidden. A value that is not understood makes ``faults`` (sentences) and an empty list, never a wider one.
    """

    main: ClassVar[tuple[str, ...]] = ()
    more: ClassVar[tuple[str, ...]] = ()
    #: Values that are words of the state machine, shown translated.
    spoken: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, params: QueryDict) -> None:
        super().__init__(params, auto_id="filter-%s")
        self._params = params
        for name, field in self.fields.items():
            field.required = False
            if isinstance(field, OpenChoiceField):
                field.include(params.get(name, ""))
        self.is_valid()

    def narrow(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The rows that pass; none at all while a value is not understood."""
        return queryset.none() if self.errors else self.apply(queryset, self.values)

    def apply(self, queryset: QuerySet[Any], values: Mapping[str, Any]) -> QuerySet[Any]:
        """The rows that pass ``values``, which holds only the filters that are set."""
        raise NotImplementedError

    @property
    def values(self) -> dict[str, Any]:
        """The filters that are set, cleaned."""
        return {name: value for name, value in self.cleaned_data.items() if value not in (None, "", [])}

    @property
    def params(self) -> list[tuple[str, str]]:
        """The parameters that are set, as they stood in the URL: the exact filter, for links, bulk forms and audit."""
        return [(name, value) for name in self.fields for value in self._params.getlist(name) if value.strip()]

    @property
    def query(self) -> str:
        """The same as a query string, with its ``?``; empty without a filter."""
        return f"?{urlencode(self.params)}" if self.params else ""

    @property
    def faults(self) -> list[Fault]:
        """Each value that was not understood."""
        return [
            Fault(f"filter-{name}_error", f"{self.fields[name].label}: {' '.join(map(str, faults))}")
            for name, faults in self.errors.items()
        ]

    def shown(self, name: str, value: str) -> str:
        """The words for a parameter's value: the value itself, or its word where it is one of the machine's."""
        return word(value) if value in self.spoken else value

    @property
    def chips(self) -> list[Chip]:
        """Every active filter, to be shown and taken away one by one."""
        params = self.params
        return [
            Chip(str(self.fields[name].label), self.shown(name, value), self._query_without(params, at))
            for at, (name, value) in enumerate(params)
        ]

    @staticmethod
    def _query_without(params: list[tuple[str, str]], at: int) -> str:
        rest = params[:at] + params[at + 1 :]
        return f"?{urlencode(rest)}" if rest else ""

    @property
    def main_fields(self) -> Iterator[BoundField]:
        """The fields always in sight."""
        return (self[name] for name in self.main)

    @property
    def more_fields(self) -> list[BoundField]:
        """The fields behind “More filters”."""
        return [self[name] for name in self.more]

    @property
    def more_is_open(self) -> bool:
        """Whether one of those is set."""
        return any(name in self.more for name, _value in self.params)


def text(label: str | _StrPromise, placeholder: str | _StrPromise = "", *, length: int = 200) -> forms.CharField:
    """A field for an exact text."""
    widget = forms.TextInput(attrs={"placeholder": placeholder, "autocomplete": "off", "spellcheck": "false"})
    return forms.CharField(label=label, max_length=length, widget=widget)


def search(label: str | _StrPromise, placeholder: str | _StrPromise) -> forms.CharField:
    """The search field of a list; the key ``/`` leads to it."""
    widget = forms.TextInput(attrs={"type": "search", "placeholder": placeholder, "spellcheck": "false"})
    return forms.CharField(label=label, max_length=300, widget=widget)


class TaskFilter(FilterForm):
    """The task list's filter. Several statuses may be named; all other fields narrow further."""

    status = forms.MultipleChoiceField(
        label=_("Status"), choices=[(status.value, status.value) for status in Status], widget=forms.MultipleHiddenInput
    )
    q = search(_("Search"), _("Search subject, error, id"))
    kind = OpenChoiceField(
        label=_("Kind"), empty=_("Any kind"), suggest=lambda: Kind.objects.values_list("pk", flat=True)[:500]
    )
    code = OpenChoiceField(
        label=_("Code"), empty=_("Any code"), suggest=lambda: ErrorCode.objects.values_list("pk", flat=True)[:500]
    )
    provider = OpenChoiceField(
        label=_("Provider"),
        empty=_("Any provider"),
        suggest=lambda: Provider.objects.values_list("pk", flat=True)[:500],
    )
    since = MomentField(label=_("Since"), placeholder=_("Since: 24h, 7d, a date"))
    until = MomentField(label=_("Until"), end_of_day=True)
    session = text(_("Session"))
    user = text(_("User"))
    trace = text(_("Trace"))
    tag = text(_("Tag"), length=100)
    priority = forms.IntegerField(label=_("Priority"), min_value=LOWEST_PRIORITY, max_value=HIGHEST_PRIORITY)

    main = ("q", "kind", "code", "since")
    more = ("until", "provider", "session", "user", "trace", "tag", "priority")
    spoken = frozenset(Status)

    #: parameter → what it does to the queryset
    STEPS: ClassVar[dict[str, Callable[[TaskQuerySet, Any], TaskQuerySet]]] = {
        "status": lambda tasks, value: tasks.filter(status__in=value),
        "q": TaskQuerySet.mentions,
        "kind": lambda tasks, value: tasks.filter(kind=value),
        "code": lambda tasks, value: tasks.filter(error_code=value),
        "provider": TaskQuerySet.on_provider,
        "since": TaskQuerySet.submitted_from,
        "until": TaskQuerySet.submitted_until,
        "session": lambda tasks, value: tasks.filter(session_id=value),
        "user": lambda tasks, value: tasks.filter(user_id=value),
        "trace": lambda tasks, value: tasks.filter(trace_id=value),
        "tag": TaskQuerySet.tagged,
        "priority": lambda tasks, value: tasks.filter(priority=value),
    }

    def apply(self, queryset: QuerySet[Any], values: Mapping[str, Any]) -> QuerySet[Any]:
        """The tasks that pass."""
        for name, value in values.items():
            queryset = self.STEPS[name](queryset, value)  # type: ignore[arg-type]
        return queryset

    def with_status(self, *statuses: str) -> str:
        """The query string with these statuses instead, all else the same."""
        others = [pair for pair in self.params if pair[0] != "status"]
        params = [("status", status) for status in statuses] + others
        return f"?{urlencode(params)}" if params else ""


class AuditFilter(FilterForm):
    """The audit's filter."""

    who = text(_("Who"), _("Who"), length=150)
    action = OpenChoiceField(
        label=_("Action"),
        empty=_("Any action"),
        suggest=lambda: set(OperatorAction.objects.order_by("-id").values_list("action", flat=True)[:1_000]),
    )
    target = text(_("On what"), _("Id or name"))
    since = MomentField(label=_("Since"), placeholder=_("Since: 24h, 7d, a date"))
    until = MomentField(label=_("Until"), placeholder=_("Until: 1h, a date"), end_of_day=True)

    main = ("who", "action", "target", "since", "until")

    def apply(self, queryset: QuerySet[Any], values: Mapping[str, Any]) -> QuerySet[Any]:
        """The actions that pass."""
        columns = {"who": "username", "action": "action", "target": "target_id", "since": "at__gte", "until": "at__lte"}
        return queryset.filter(**{columns[name]: value for name, value in values.items()})
