"""What the demo configures, and what it leaves to people."""

from __future__ import annotations

import pytest

from tasks.demo.configure import configure
from tasks.demo.kinds import KINDS, TRIAGE_SCHEMA
from tasks.models import Kind, Provider

pytestmark = pytest.mark.django_db

URL = "http://127.0.0.1:4100/fault/demo/v1"


def test_the_provider_and_three_kinds_are_made_once() -> None:
    for _ in range(2):
        configure(URL, {})
    provider = Provider.objects.get()
    assert (provider.name, provider.base_url, provider.simulated) == ("simulated", URL, True)
    assert sorted(Kind.objects.values_list("name", flat=True)) == sorted(KINDS)
    triage = Kind.objects.get(pk="ticket.triage")
    assert (triage.provider, triage.model, triage.max_attempts, triage.jitter) == (provider, "simulated-small", 3, 0.5)
    assert triage.output_schema == TRIAGE_SCHEMA
    assert triage.prompt_version is not None
    assert triage.versions.count() == 1


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_passes_the_checks_of_the_admin(name: str) -> None:
    configure(URL, {})
    Kind.objects.get(pk=name).full_clean()


def test_the_address_is_kept_in_step() -> None:
    configure(URL, {})
    Provider.objects.filter(pk="simulated").update(simulated=False)
    configure("http://127.0.0.1:4200/fault/demo/v1", {})
    provider = Provider.objects.get()
    assert (provider.base_url, provider.simulated) == ("http://127.0.0.1:4200/fault/demo/v1", True)


def test_what_a_person_changed_stays() -> None:
    configure(URL, {})
    other = Provider.objects.create(name="mine", base_url="https://llm.example/v1")
    kind = Kind.objects.get(pk="reply.draft")
    kind.provider, kind.model, kind.prompt, kind.max_attempts = other, "real", "{{ text }}", 7
    kind.save()
    Provider.objects.filter(pk="simulated").update(max_concurrency=4)
    configure(URL, {})
    kind.refresh_from_db()
    assert (kind.provider, kind.model, kind.prompt, kind.max_attempts) == (other, "real", "{{ text }}", 7)
    assert kind.versions.count() == 2
    assert Provider.objects.get(pk="simulated").max_concurrency == 4


def test_a_key_brings_a_provider_and_gives_it_to_no_kind() -> None:
    configure(URL, {"OPENAI_API_KEY": "sk-x"})
    provider = Provider.objects.get(pk="openai")
    assert (provider.base_url, provider.api_key_env) == ("https://api.openai.com/v1", "OPENAI_API_KEY")
    assert provider.simulated is False
    assert not provider.kinds.exists()
    assert not provider.backed_up_kinds.exists()


def test_without_a_key_there_is_no_such_provider() -> None:
    configure(URL, {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": "https://llm.example/v1"})
    assert not Provider.objects.filter(pk="openai").exists()


def test_a_base_url_of_the_environment_is_for_the_first_start() -> None:
    with_url = {"OPENAI_API_KEY_FILE": "/run/secrets/key", "OPENAI_BASE_URL": "https://one.example/v1"}
    assert len(configure(URL, with_url)) == 1
    assert Provider.objects.get(pk="openai").base_url == "https://one.example/v1"
    assert len(configure(URL, with_url)) == 1


def test_a_person_s_address_of_openai_stays_and_the_other_is_pointed_out() -> None:
    with_url = {"OPENAI_API_KEY": "sk-x", "OPENAI_BASE_URL": "https://user:pw@one.example/v1"}
    Provider.objects.create(name="openai", base_url="https://persons.example/v1", api_key_env="MINE")
    notes = configure(URL, with_url)
    provider = Provider.objects.get(pk="openai")
    assert (provider.base_url, provider.api_key_env) == ("https://persons.example/v1", "MINE")
    assert notes[1] == (
        "provider openai keeps the address that it has; OPENAI_BASE_URL names another. Change it in the admin, if you"
        " mean to."
    )


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("https://user:hunter2@llm.example/v1", "An address takes no user, password, ? or #"),
        ("llm.example/v1", "Give an address that starts with http:// or https:// and a host."),
        ("https://llm.example/v1/chat/completions", "Leave out /chat/completions: every call adds it."),
        ("https://llm.example/" + "x" * 500, "Ensure this value has at most 500 characters"),
    ],
)
def test_an_address_that_the_admin_would_refuse_makes_no_provider(address: str, why: str) -> None:
    (note,) = configure(URL, {"OPENAI_API_KEY": "sk-x", "OPENAI_BASE_URL": address})
    assert note.startswith(f"no provider openai was made, OPENAI_BASE_URL is not usable: {why}")
    assert "hunter2" not in note
    assert list(Provider.objects.values_list("name", flat=True)) == ["simulated"]


def test_a_provider_that_a_person_gave_another_address_is_theirs() -> None:
    configure(URL, {})
    Kind.objects.get(pk="reply.draft").delete()
    Provider.objects.filter(pk="simulated").update(base_url="https://llm.example/v1", simulated=False)
    (note,) = configure(URL, {})
    assert note.endswith(f"To give it back to the demo, set its address to {URL} and start the demo again.")
    provider = Provider.objects.get()
    assert (provider.base_url, provider.simulated) == ("https://llm.example/v1", False)
    assert not Kind.objects.filter(pk="reply.draft").exists(), "no kind is made that would cost money"

    Provider.objects.update(base_url=URL)
    assert configure("http://127.0.0.1:4300/fault/demo/v1", {}) == []
    provider = Provider.objects.get()
    assert (provider.base_url, provider.simulated) == ("http://127.0.0.1:4300/fault/demo/v1", True)
    assert Kind.objects.filter(pk="reply.draft").exists()
