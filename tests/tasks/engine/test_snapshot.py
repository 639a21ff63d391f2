"""What a task runs by is of one moment: that of its claim."""

from __future__ import annotations

import threading

import psycopg
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tasks import lifecycle
from tasks.engine.snapshot import Versions, claim_jobs
from tasks.models import Kind, Provider
from tests.tasks.lifecycle import world

OLD, NEW = "http://127.0.0.1:9/old", "http://127.0.0.1:9/new"


@pytest.mark.django_db
def test_a_job_holds_what_kind_and_provider_say() -> None:
    provider = world.provider(api_key_env="KEY_OF_P", simulated=True)
    kind = world.prompt_kind(timeout_seconds=7, max_attempts=5, stream=False, temperature=0.5, max_repairs=1)
    Kind.objects.create(name="refund.execute", handler="refund", timeout_seconds=9)
    lifecycle.submit("ticket.triage", {"text": "a"})
    lifecycle.submit("refund.execute", {})
    prompt, code = claim_jobs(world.worker(), 2, ["refund"], Versions()).jobs
    assert prompt.provider is not None and prompt.spec is not None
    assert (prompt.provider.name, prompt.provider.base_url) == ("p", provider.base_url)
    assert (prompt.provider.api_key_env, prompt.simulated) == ("KEY_OF_P", True)
    assert (prompt.kind.timeout_seconds, prompt.kind.policy.max_attempts) == (7, 5)
    assert (prompt.spec.model, prompt.spec.prompt, prompt.spec.stream) == ("m", "{{ text }}", False)
    assert (prompt.spec.temperature, prompt.spec.max_repairs, prompt.spec.version) == (0.5, 1, 1)
    assert (code.provider, code.spec, code.simulated, code.kind.timeout_seconds) == (None, None, False, 9)
    assert kind.prompt_version_id == prompt.claimed.prompt_version_id


@pytest.mark.django_db
def test_a_job_knows_the_time_of_the_database_whatever_this_machine_believes() -> None:
    world.prompt_kind()
    lifecycle.submit("ticket.triage", {"text": "a"})
    (job,) = claim_jobs(world.worker(), 1, [], Versions()).jobs
    shifted = job._replace(claimed=job.claimed._replace(claimed_at=job.claimed.claimed_at + 600))
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM now())::float8")
        ((now,),) = cursor.fetchall()
    assert job.database_time(job.received) == now, "one transaction, in which now() stands still"
    assert shifted.database_time(job.received + 1) == now + 601


@pytest.mark.django_db
def test_a_claim_asks_for_tasks_and_no_more_once_the_prompts_are_known() -> None:
    world.prompt_kind()
    worker, versions = world.worker(), Versions()
    for expected in (2, 1):
        lifecycle.submit_many("ticket.triage", [{"text": "a"}] * 5)
        with CaptureQueriesContext(connection) as queries:
            assert len(claim_jobs(worker, 5, [], versions).jobs) == 5
        asked = [query["sql"] for query in queries if "SAVEPOINT" not in (query["sql"] or "prepared")]
        assert len(asked) == expected


@pytest.mark.django_db(transaction=True)
def test_address_and_prompt_that_change_together_are_seen_together(
    test_database_url: str, second_connection: psycopg.Connection
) -> None:
    kind = world.prompt_kind()
    Provider.objects.update(base_url=OLD)
    old = kind.prompt_version_id
    kind.prompt = "new: {{ text }}"
    kind.save()
    new = kind.prompt_version_id
    Kind.objects.update(prompt_version=old)
    lifecycle.submit_many("ticket.triage", [{"text": f"{n}"} for n in range(300)])
    worker, versions, over = world.worker(), Versions(), threading.Event()

    def change() -> None:
        """Back and forth, both in one transaction, until all is claimed."""
        while not over.is_set():
            for address, version in ((NEW, new), (OLD, old)):
                with second_connection.transaction():
                    second_connection.execute("UPDATE tasks_provider SET base_url = %s", [address])
                    second_connection.execute("UPDATE tasks_kind SET prompt_version_id = %s", [version])

    operator = threading.Thread(target=change)
    operator.start()
    try:
        jobs = [job for _ in range(300) for job in claim_jobs(worker, 1, [], versions).jobs]
    finally:
        over.set()
        operator.join()
    seen = {(job.provider.base_url, job.claimed.prompt_version_id) for job in jobs if job.provider}
    assert len(jobs) == 300
    assert seen == {(OLD, old), (NEW, new)}
