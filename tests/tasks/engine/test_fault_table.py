"""1,000 tasks from files against every fault, one provider per fault, run by a real cluster: each ends as listed."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db.models import Count, Q

from deadletters.models import DeadLetter
from tasks.demo.witness import read_log
from tasks.models import Attempt, ModelCall, Provider, Task
from tests.cluster import QCluster, wait_until
from tests.tasks.demo.conftest import ProviderProcess

TASKS = 1_000
SCHEMA = {
    "type": "object",
    "required": ["category", "urgency"],
    "properties": {"category": {"enum": ["billing", "outage"]}, "urgency": {"type": "integer", "maximum": 5}},
}


@dataclass(frozen=True)
class Expect:
    """How the tasks of one fault end: status, reason, code; counted attempts and calls of the provider for each."""

    status: str
    code: str = ""
    reason: str = ""
    counted: int = 1
    calls: int = 1
    settings: str = ""


def retried(code: str) -> Expect:
    """Three counted attempts, after 0, 1 and 2 s, then dead."""
    return Expect("dead", code, "attempts_exhausted", counted=3, calls=3)


def at_once(code: str) -> Expect:
    """Dead after the first."""
    return Expect("dead", code, "not_retryable")


GOOD = Expect("succeeded")
LIMITED = Expect("succeeded", counted=1, calls=3)

TABLE: dict[str, Expect] = {
    "ok": GOOD,
    "error_500": retried("AI_UPSTREAM_5XX"),
    "error_503": retried("AI_OVERLOADED"),
    "error_503_retry_after": retried("AI_OVERLOADED"),
    "error_529_retry_after": retried("AI_OVERLOADED"),
    "html_502": retried("AI_UPSTREAM_5XX"),
    "refused": Expect("dead", "AI_CONNECTION_FAILED", "attempts_exhausted", counted=3, calls=0),
    "reset": retried("AI_CONNECTION_FAILED"),
    "stream_cut": retried("AI_CONNECTION_FAILED"),
    "no_finish_reason": retried("AI_CONNECTION_FAILED"),
    "rate_limit_retry_after": LIMITED,
    "rate_limit_date": LIMITED,
    "rate_limit_ms": LIMITED,
    "rate_limit_plain": LIMITED,
    "permission_denied": at_once("AI_PERMISSION_DENIED"),
    "model_not_found": at_once("AI_MODEL_NOT_FOUND"),
    "context_too_long": at_once("AI_CONTEXT_TRUNCATED"),
    "request_too_large": at_once("AI_INPUT_TOO_LARGE"),
    "request_too_large_429": at_once("AI_INPUT_TOO_LARGE"),
    "content_filter_400": at_once("AI_CONTENT_FILTERED"),
    "content_filter_finish": at_once("AI_CONTENT_FILTERED"),
    "not_json": Expect("dead", "AI_OUTPUT_MALFORMED", "not_retryable", calls=3),
    "wrong_schema": Expect("dead", "AI_OUTPUT_MALFORMED", "not_retryable", calls=3),
    "fenced_json": GOOD,
    "repaired": Expect("succeeded", calls=2),
    "length": at_once("AI_OUTPUT_TRUNCATED"),
    "empty": retried("AI_OUTPUT_EMPTY"),
    "empty_200": retried("AI_OUTPUT_MALFORMED"),
    "html_200": retried("AI_OUTPUT_MALFORMED"),
    "object_200": retried("AI_OUTPUT_MALFORMED"),
    "error_in_200": retried("AI_OVERLOADED"),
    "error_in_200_context": at_once("AI_CONTEXT_TRUNCATED"),
    "no_answer": Expect(
        "dead", "AI_MODEL_TIMEOUT", "attempts_exhausted", counted=3, calls=3, settings="timeout_seconds = 3"
    ),
}
#: The first answer of this sort holds the provider; all but the one that began it wait for a person.
HOLDING = {
    "auth_failed": "AI_AUTH_FAILED",
    "quota_exhausted": "AI_QUOTA_EXHAUSTED",
    "quota_402": "AI_QUOTA_EXHAUSTED",
}
#: Without repairs a malformed answer is retried within the budget.
UNREPAIRED = {"wrong_schema": retried("AI_OUTPUT_MALFORMED")}


@pytest.fixture
def simulated(tmp_path: Path) -> Iterator[ProviderProcess]:
    """A provider of this test's own, quick, with its log."""
    process = ProviderProcess(tmp_path / "witness.jsonl", "--delay", "20")
    yield process
    process.end()


def configuration(simulated: ProviderProcess) -> str:
    """One provider and one kind per fault."""
    parts = []
    kinds = {fault: (fault, expect.settings) for fault, expect in TABLE.items()}
    kinds |= {fault: (fault, "") for fault in HOLDING}
    kinds |= {f"unrepaired.{fault}": (fault, "max_repairs = 0") for fault in UNREPAIRED}
    for kind, (fault, settings) in kinds.items():
        url = "http://127.0.0.1:9/v1" if fault == "refused" else simulated.url(f"fault/{fault}")
        name = kind.replace(".", "-")
        parts.append(f'[[provider]]\nname = "{name}"\nbase_url = "{url}"')
        parts.append(
            f'[[kind]]\nname = "{kind}"\nprovider = "{name}"\nmodel = "simulated-small"\njitter = 0\n'
            f"prompt = 'Triage [task:{{{{ mark }}}}]. Answer by this JSON Schema: {json.dumps(SCHEMA)}'\n"
            f"output_schema = '{json.dumps(SCHEMA)}'\n{settings}"
        )
    return "\n".join(parts)


def submit_all(folder: Path) -> Counter[str]:
    """The 1,000 tasks, from one file per kind by the submit command; how many of each kind."""
    kinds = [*TABLE, *HOLDING, *(f"unrepaired.{fault}" for fault in UNREPAIRED)]
    each, rest = divmod(TASKS, len(kinds))
    counts = Counter({kind: each + (number < rest) for number, kind in enumerate(kinds)})
    for kind, count in counts.items():
        file = folder / f"{kind}.jsonl"
        file.write_text("".join(json.dumps({"mark": f"{kind}-{n}"}) + "\n" for n in range(count)))
        out = io.StringIO()
        call_command("submit", kind, input=str(file), stdout=out, stderr=io.StringIO())
        assert len(out.getvalue().split()) == count
    return counts


def nothing_moves() -> bool:
    """Whether every task has ended or waits, ready, for a provider that is on hold."""
    held = Q(status="ready", lane__provider__held_at__isnull=False)
    return not Task.objects.filter(finished_at=None).exclude(held).exists()


@pytest.mark.django_db(transaction=True)
def test_each_fault_leads_where_the_table_says(
    test_database_url: str, simulated: ProviderProcess, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(configuration(simulated))
    call_command("loadconfig", str(file), stdout=io.StringIO())
    Provider.objects.update(simulated=True)
    with QCluster(test_database_url, REDRIVE_SLOTS=50) as cluster:
        cluster.wait_ready()
        counts = submit_all(tmp_path)
        assert sum(counts.values()) == TASKS
        wait_until(nothing_moves, "every task ended or held back", 120)
        cluster.terminate()
        assert cluster.wait() == 0
        assert cluster.survivors() == []

    calls = Counter(event["task"] for event in read_log(simulated.log) if event["event"] == "request")
    expected = {**TABLE, **{f"unrepaired.{fault}": expect for fault, expect in UNREPAIRED.items()}}
    found = {kind: ends(kind, calls) for kind in expected}
    assert found == {kind: Counter({of(expect): counts[kind]}) for kind, expect in expected.items()}
    for kind, code in HOLDING.items():
        assert held(kind) == {("dead", "not_retryable", code): 1, ("ready", "", code): counts[kind] - 1}, kind
        assert Provider.objects.get(name=kind.replace(".", "-")).hold_code == code
    assert not Attempt.objects.filter(outcome="running").exists()
    assert DeadLetter.objects.count() == Task.objects.filter(status="dead").count()
    assert set(DeadLetter.objects.filter(reason="attempts_exhausted").values_list("attempts", flat=True)) == {3}
    check_waits()
    check_mending()
    check_timeout(simulated)


def of(expect: Expect) -> tuple[str, str, str, int, int]:
    """The row of the table, as ``ends`` finds it."""
    return (expect.status, expect.reason, expect.code, expect.counted, expect.calls)


def ends(kind: str, calls: Counter[str]) -> Counter[tuple[str, str, str, int, int]]:
    """How the tasks of a kind ended."""
    tasks = Task.objects.filter(kind=kind).annotate(counted=Count("attempts", filter=Q(attempts__counted=True)))
    return Counter((t.status, t.reason, t.error_code, t.counted, calls[str(t.id)]) for t in tasks)


def held(kind: str) -> Counter[tuple[str, str, str]]:
    """Where the tasks of a kind stand whose provider is held; those that wait unasked have no code of their own."""
    code = HOLDING[kind]
    rows = Task.objects.filter(kind=kind).values_list("status", "reason", "error_code", "failures")
    assert all(failures == (status == "dead") for status, _, _, failures in rows)
    return Counter((status, reason, found or code) for status, reason, found, _ in rows)


def gaps(kind: str) -> list[list[float]]:
    """Seconds from the end of each attempt to the start of the next, for each task of a kind."""
    answer = []
    for task in Task.objects.filter(kind=kind).prefetch_related("attempts"):
        attempts = sorted(task.attempts.all(), key=lambda attempt: attempt.id)
        answer.append([
            (later.started_at - earlier.finished_at).total_seconds()
            for earlier, later in pairwise(attempts)
            if earlier.finished_at
        ])  # fmt: skip
    return answer


def delays(kind: str) -> set[tuple[float, ...]]:
    """The delays that were decided for the attempts of a kind's tasks, in order; the last attempt decides none."""
    rows = Task.objects.filter(kind=kind).prefetch_related("attempts")
    tried = [sorted(task.attempts.all(), key=lambda attempt: attempt.id)[:-1] for task in rows]
    return {tuple(round((attempt.decision or {})["delay_seconds"], 2) for attempt in attempts) for attempts in tried}


def check_waits() -> None:
    """Each wait is what the table says, and nothing comes back before its time."""
    assert delays("error_500") == {(1.0, 2.0)}
    assert delays("error_503_retry_after") == {(3.0, 3.0)}
    assert delays("rate_limit_retry_after") == {(2.0, 2.0)}
    assert delays("rate_limit_ms") == {(1.5, 1.5)}
    assert delays("rate_limit_plain") == {(1.0, 2.0)}
    for first, second in gaps("error_500"):
        assert first >= 1.0
        assert second >= 2.0
    for first, second in gaps("error_503_retry_after"):
        assert first >= 3.0
        assert second >= 3.0
    for waits in gaps("rate_limit_retry_after"):
        assert min(waits) >= 1.99
    for first, second in gaps("rate_limit_plain"):
        assert first >= 1.0
        assert second >= 2.0
    assert Provider.objects.get(name="rate_limit_plain").cooling_until is None
    assert Provider.objects.get(name="rate_limit_retry_after").cooling_until is not None


def check_timeout(simulated: ProviderProcess) -> None:
    """Calls that get no answer are aborted at ``timeout_seconds``: the provider sees the client go."""
    silent = [event for event in read_log(simulated.log) if event["fault"] == "no_answer"]
    assert Counter(event["event"] for event in silent if event["event"] != "request").keys() == {"closed"}
    for attempt in Attempt.objects.filter(task__kind="no_answer"):
        assert attempt.finished_at is not None
        assert 3.0 <= (attempt.finished_at - attempt.started_at).total_seconds() < 30.0
        assert "no answer within 3 s" in attempt.last_error


def check_mending() -> None:
    """What was mended is recorded, and what was sent back names the field and what is allowed."""
    assert all(Attempt.objects.filter(task__kind="fenced_json").values_list("mended", flat=True))
    assert set(Attempt.objects.filter(task__kind="repaired").values_list("repairs", flat=True)) == {1}
    second = ModelCall.objects.filter(attempt__task__kind="repaired", seq=2)[0]
    assert any(word in second.messages[-1]["content"] for word in ("category", "urgency"))
