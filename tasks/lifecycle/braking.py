"""What ended attempts mean for their provider: it cools, or is held; what a held one ends so is put off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tasks.lifecycle import brakes
from tasks.lifecycle.end import SNOOZE, End
from tasks.models import Provider
from tasks.states import Outcome


def behind_locked_providers(ends: Sequence[End]) -> set[str]:
    """The providers that these ends would cool or hold and whose row somebody else has locked; the others are ours."""
    wanted = {end.provider for end in ends if end.provider and (end.hold or end.cool_seconds)}
    if not wanted:
        return set()
    rows = Provider.objects.select_for_update(skip_locked=True, no_key=True).filter(pk__in=wanted).order_by("pk")
    return wanted - set(rows.values_list("pk", flat=True))


def cool(ends: Iterable[End]) -> None:
    """Let the providers rest that these ends say are to; of several times for one the longest."""
    cooling: dict[str, tuple[float, str]] = {}
    for end in ends:
        if end.provider and end.cool_seconds and end.cool_seconds > cooling.get(end.provider, (0.0, ""))[0]:
            cooling[end.provider] = (end.cool_seconds, end.failed.code if end.failed else "")
    if cooling:
        brakes.cool_providers(cooling)


def apply_holds(ends: Sequence[End]) -> list[End]:
    """Begin the holds; the end that began one keeps its death, the others become snoozes."""
    holds = {end.provider: end.hold for end in ends if end.hold and end.provider}
    begun = brakes.hold_for_failures(holds) if holds else set()
    answer = []
    for end in ends:
        if end.hold and end.provider:
            if end.provider in begun:
                begun.discard(end.provider)
            else:
                end = _snoozed_by_hold(end)
        answer.append(end)
    return answer


def _snoozed_by_hold(end: End) -> End:
    decision = {"action": SNOOZE, "delay_seconds": end.hold_snooze_seconds, "because": "provider_held"}
    return End(
        task_id=end.task_id,
        attempt_id=end.attempt_id,
        outcome=Outcome.SNOOZED,
        failed=end.failed,
        action=SNOOZE,
        delay_seconds=end.hold_snooze_seconds,
        decision=decision,
        provider=end.provider,
        usage=end.usage,
        log=end.log,
    )
