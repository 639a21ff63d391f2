"""A console with something of everything, and the address of every page of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Page

from deadletters.models import DeadLetter
from tasks import audit, lifecycle
from tasks.models import Attempt, AttemptLog, Task
from tasks.states import Outcome, Status
from tests.deadletters import deaths
from tests.factories import make_attempt, make_call, make_kind, make_provider, make_task, make_worker

Scheme = Literal["light", "dark"]
LONG_KIND = "enterprise.customer-relationship.ticket-triage-with-a-very-long-name.v2"
LONG_PROVIDER = "a-provider-with-quite-a-long-name-that-somebody-in-another-team-chose"
SUBJECTS = (
    "A subject without end " * 9,
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
    "发票金额有误，请尽快处理并回复我们的财务同事，谢谢",
    "بطاقتي لا تعمل منذ تحديث التطبيق ولا أستطيع الدفع",
)
#: The one that is under way comes last: its task would be claimed for the next.
LETTER_STATES = ("open", "recovered", "died_again", "cancelled", "discarded", "reprocessed")
STATIC = (
    "help",
    "help/words",
    "help/handlers",
    "help/commands",
    "help/api",
    "help/django-q",
    "help/pgbouncer",
    "help/keys",
    "profile",
    "nothing/here",
)
ADMIN = (
    "",
    "tasks/provider/",
    "tasks/provider/acme/change/",
    "tasks/kind/",
    "tasks/kind/ticket.triage/change/",
    "tasks/promptversion/",
    "tasks/errorcode/",
    "tasks/errorcode/AI_RATE_LIMITED/change/",
    "tasks/errorrule/add/",
    "tasks/apikey/",
    "django_q/schedule/",
    "django_q/schedule/add/",
    "auth/user/",
    "auth/user/add/",
    "auth/group/add/",
    "password_change/",
)


def show(page: Page, width: int, scheme: Scheme) -> None:
    """Turn the page that is open to a screen of this width and scheme: styles follow both, scripts ask for neither."""
    page.set_viewport_size({"width": width, "height": 800})
    # Without motion: a colour that is still on its way from the scheme before is neither of the two.
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")


def fill(operator: User) -> list[str]:
    """Put something of everything into the console; the paths of its pages."""
    letters = [f"dead-letters/{deaths.letter(state=state, session_id='s' * 150).pk}" for state in LETTER_STATES]
    tasks = [_stop_and_start(), *_of_every_status(), _rich()]
    audit.record(operator, "cancel_tasks", count=3, filter={"ids": ["x" * 100]}, reason="r" * 200, outcome="done")
    audit.record(operator, "discard_letter", target_type="letter", target_id=DeadLetter.objects.first().pk)  # type: ignore[union-attr]
    attempt = Attempt.objects.filter(calls__isnull=False).distinct().get()
    return [
        *_lists(),
        *(f"/{path}/" for path in letters),
        *(f"/tasks/{task.pk}/" for task in tasks),
        f"/tasks/{attempt.task_id}/attempts/{attempt.pk}/",
        f"/tasks/{attempt.task_id}/attempts/{attempt.pk}/log/",
        f"/tasks/{attempt.task_id}/attempts/?before={attempt.pk + 1}",
        f"/tasks/{attempt.task_id}/events/?before=99",
        f"/tasks/{attempt.task_id}/payload/",
        *(f"/{name}/" for name in STATIC),
    ]


def _lists() -> list[str]:
    tabs = [f"/dead-letters/?state={state}" for state in ("recovered", "all")]
    faults = ["/tasks/?status=dead&since=soon&tag=x", "/tasks/?q=nothing+like+it"]
    return ["/tasks/", *faults, "/dead-letters/", *tabs, "/kinds/", "/workers/", "/audit/"]


def _stop_and_start() -> Task:
    """Workers in each state, a kind that is paused, one without a worker, providers that rest; a task held back."""
    make_worker(running=3, host="ip-10-128-44-201.eu-central-1.compute.internal.example.com")
    make_worker(lease=-1)
    make_worker(lost_at=timezone.now(), exit_code=-9, late_saves_refused=12_345)
    make_kind("invoice.check", handler="invoices.check")
    make_provider("slow", cooling_until=timezone.now() + timedelta(minutes=5), cooling_reason="AI_RATE_LIMITED")
    make_kind("reply.draft", provider=make_provider("slow"), model="m-1", prompt="{{ text }}")
    make_kind(LONG_KIND, provider=make_provider(LONG_PROVIDER, base_url=f"https://{'host.' * 20}example.com/v1"))
    lifecycle.pause_kind("ticket.triage", by="ana", reason="wrong language " * 20)
    lifecycle.hold_provider("acme", by="redrive", reason="bad key", code="AI_AUTH_FAILED")
    return make_task(kind="reply.draft")


def _of_every_status() -> list[Task]:
    made = []
    for at, status in enumerate(status for status in Status if status != Status.WAITING):
        fields = {"subject": SUBJECTS[at % len(SUBJECTS)], "tags": ["vip", "long-tag-" * 11], "session_id": "s" * 150}
        made.append(make_task(status, kind=LONG_KIND if at % 2 else "ticket.triage", **fields))
    running = next(task for task in made if task.status == Status.RUNNING)
    scheduled = Task.objects.filter(status=Status.SCHEDULED)
    scheduled.update(run_after=timezone.now() + timedelta(hours=23, minutes=59), cycle=12, failures=2)
    Task.objects.filter(pk=running.pk).update(progress={"step": 2, "total": 5, "text": "asking for chapter two"})
    return made


def _rich() -> Task:
    """Dead, sent again, with long errors, a long payload, the trail of two calls, a log and a hook that failed."""
    task = make_task(Status.DEAD, kind="ticket.triage", payload={"text": "word " * 600})
    lifecycle.reprocess([task.pk], actor="ana")
    task.refresh_from_db()
    attempt = make_attempt(task, Outcome.FAILED, last_error="e" * 5_000)
    make_call(attempt, answer="z" * 9_000)
    make_call(attempt, answer="", error="a_package.of_providers." * 8, model="m" * 100)
    AttemptLog.objects.create(attempt=attempt, seq=1, at=attempt.started_at, text="x" * 2_000)
    hook = {"hook": "shop.hooks." + "tell" * 40, "error": "ValueError: " + "https://example.com/" * 14}
    lifecycle.note([(task.pk, "hook_failed", attempt.pk, "", hook)])
    return task
