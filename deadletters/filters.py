"""The filter of the letters: the URL's parameters → a queryset → the URL's parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar
from urllib.parse import urlencode

from django import forms
from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from deadletters.querysets import LetterQuerySet
from tasks.filters import FilterForm, MomentField, OpenChoiceField, search, text
from tasks.models import ErrorCode, Kind, Provider
from tasks.states import LetterState, Reason
from tasks.words import word

#: The value of ``state`` that stands for every state; without the parameter only open letters are shown.
ALL = "all"
#: States offered as tabs, in the order of a letter's life.
TABS = (
    LetterState.OPEN,
    LetterState.REPROCESSED,
    LetterState.RECOVERED,
    LetterState.DIED_AGAIN,
    LetterState.CANCELLED,
    LetterState.DISCARDED,
)


def _reasons() -> list[tuple[str, Any]]:
    return [("", _("Any reason")), *((reason.value, word(reason).capitalize()) for reason in Reason)]


class LetterFilter(FilterForm):
    """The letters' filter. Without a state it means the open ones."""

    state = forms.ChoiceField(
        label=_("State"), choices=[(str(state), str(state)) for state in (*TABS, ALL)], widget=forms.HiddenInput
    )
    q = search(_("Search"), _("Search error, subject, id"))
    kind = OpenChoiceField(
        label=_("Kind"), empty=_("Any kind"), suggest=lambda: Kind.objects.values_list("pk", flat=True)[:500]
    )
    code = OpenChoiceField(
        label=_("Code"), empty=_("Any code"), suggest=lambda: ErrorCode.objects.values_list("pk", flat=True)[:500]
    )
    reason = forms.ChoiceField(label=_("Reason"), choices=_reasons)
    since = MomentField(label=_("Since"), placeholder=_("Since: 24h, 7d, a date"))
    until = MomentField(label=_("Until"), end_of_day=True)
    provider = OpenChoiceField(
        label=_("Provider"),
        empty=_("Any provider"),
        suggest=lambda: Provider.objects.values_list("pk", flat=True)[:500],
    )
    fingerprint = text(_("Fingerprint"), length=64)
    session = text(_("Session"))
    user = text(_("User"))
    trace = text(_("Trace"))

    main = ("q", "kind", "code", "reason", "since")
    more = ("until", "provider", "fingerprint", "session", "user", "trace")
    spoken = frozenset((*LetterState, *Reason))

    #: parameter → what it does to the queryset
    STEPS: ClassVar[dict[str, Callable[[LetterQuerySet, Any], LetterQuerySet]]] = {
        "q": LetterQuerySet.mentions,
        "kind": lambda letters, value: letters.filter(kind=value),
        "code": lambda letters, value: letters.filter(error_code=value),
        "reason": lambda letters, value: letters.filter(reason=value),
        "since": LetterQuerySet.died_from,
        "until": LetterQuerySet.died_until,
        "provider": lambda letters, value: letters.filter(provider=value),
        "fingerprint": lambda letters, value: letters.filter(fingerprint=value),
        "session": lambda letters, value: letters.filter(session_id=value),
        "user": lambda letters, value: letters.filter(user_id=value),
        "trace": lambda letters, value: letters.filter(trace_id=value),
    }

    def __init__(self, params: QueryDict) -> None:
        super().__init__(params)
        self.current_state = self.cleaned_data.get("state") or LetterState.OPEN

    def apply(self, queryset: QuerySet[Any], values: Mapping[str, Any]) -> QuerySet[Any]:
        """The letters that pass."""
        if self.current_state != ALL:
            queryset = queryset.filter(state=self.current_state)
        for name in self.STEPS.keys() & values.keys():
            queryset = self.STEPS[name](queryset, values[name])  # type: ignore[arg-type]
        return queryset

    @property
    def params(self) -> list[tuple[str, str]]:
        """The parameters that are set; the state that is meant anyway is not one of them."""
        return [pair for pair in super().params if pair != ("state", LetterState.OPEN)]

    @property
    def chips(self) -> list[Any]:
        """Every active filter but the state, which the tabs show."""
        label = str(self.fields["state"].label)
        return [chip for chip in super().chips if chip.label != label]

    @property
    def decides(self) -> bool:
        """Whether letters of the state can be decided about, so that ticking them makes sense."""
        return self.current_state in (LetterState.OPEN, LetterState.DISCARDED, ALL)

    def with_state(self, state: str) -> str:
        """The query string with this state instead, all else the same."""
        others = [pair for pair in self.params if pair[0] != "state"]
        params = others if state == LetterState.OPEN else [("state", state), *others]
        return f"?{urlencode(params)}" if params else ""
