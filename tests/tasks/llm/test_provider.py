"""Clients and keys."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tasks.errors import ConfigurationFault
from tasks.llm.call import run_prompt
from tasks.llm.provider import Clients, api_key
from tasks.llm.request import CallRecord, PromptSpec, ProviderConfig
from tests.chat import chat
from tests.provider import ScriptedProvider

SPEC = PromptSpec("m", "", "hello")
KEYED = ProviderConfig("acme", "https://llm.example/v1", "ACME_KEY")


def test_key_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_KEY", " sk-1\n")

    assert api_key(KEYED) == "sk-1"


def test_key_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-2\n")
    monkeypatch.setenv("ACME_KEY_FILE", str(tmp_path / "key"))

    assert api_key(KEYED) == "sk-2"


def test_no_key_needed() -> None:
    assert api_key(ProviderConfig("local", "http://127.0.0.1:1/v1")) == "none"


def test_a_missing_key_names_the_variable_and_makes_no_call() -> None:
    calls: list[CallRecord] = []

    with pytest.raises(ConfigurationFault, match=r"provider 'acme' .* ACME_KEY, which is not set"):
        asyncio.run(run_prompt(clients=Clients(), provider=KEYED, spec=SPEC, payload={}, calls=calls))

    assert calls == []


def test_an_unreadable_key_file_names_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ACME_KEY_FILE", str(tmp_path / "none"))

    with pytest.raises(ConfigurationFault, match=r"ACME_KEY_FILE, .*FileNotFoundError"):
        api_key(KEYED)


@pytest.mark.parametrize("key", ["sk-ключ", "two words", "a\x01b"])
def test_what_cannot_be_a_key_is_not_repeated(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("ACME_KEY", key)

    with pytest.raises(ConfigurationFault) as caught:
        api_key(KEYED)

    assert "ACME_KEY" in str(caught.value)
    assert key not in str(caught.value)


@pytest.mark.parametrize("variable", ["SECRET_KEY", "REDRIVE_OPERATOR_PASSWORD", "DATABASE_URL", "PGPASSWORD"])
@pytest.mark.parametrize("suffix", ["", "_FILE"])
def test_a_secret_of_the_installation_is_sent_to_no_provider(
    provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str, suffix: str
) -> None:
    """The row may be older than the check of it, or written by SQL."""
    (tmp_path / "secret").write_text("hunter2")
    monkeypatch.setenv(f"{variable}{suffix}", str(tmp_path / "secret") if suffix else "hunter2")
    sentence = f"provider 'acme' names {variable} for its key, a setting of Redrive or of the system"

    with pytest.raises(ConfigurationFault, match=sentence):
        sent_headers(provider, ProviderConfig("acme", provider.base_url, variable))

    assert provider.requests == []


@pytest.mark.parametrize(
    "url", ["", "llm.example/v1", "ftp://llm.example", "http://", "http://h:99999/v1", "http://[/"]
)
def test_an_impossible_address_is_a_fault_of_configuration(url: str) -> None:
    with pytest.raises(ConfigurationFault, match="address of provider 'x'"):
        Clients().get(ProviderConfig("x", url))


def test_one_client_per_endpoint_and_a_new_one_when_the_key_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    clients = Clients()
    monkeypatch.setenv("ACME_KEY", "sk-1")
    first = clients.get(KEYED)

    assert clients.get(ProviderConfig("acme", "https://llm.example/v1", "ACME_KEY")) is first
    monkeypatch.setenv("ACME_KEY", "sk-2")
    assert clients.get(KEYED) is not first
    assert clients.get(KEYED).api_key == "sk-2"


def test_the_sdk_does_not_retry_and_sets_no_clock_of_its_own() -> None:
    client = Clients().get(ProviderConfig("x", "http://127.0.0.1:1/v1"))

    assert client.max_retries == 0
    assert (client.timeout.read, client.timeout.connect) == (None, 10.0)


def sent_headers(provider: ScriptedProvider, config: ProviderConfig, headers: dict[str, str] | None = None) -> Any:
    async def call() -> None:
        clients = Clients()
        await run_prompt(clients=clients, provider=config, spec=SPEC, payload={}, calls=[], headers=headers)
        await clients.aclose()

    provider.script(lambda request, n: chat(request, "ok"))
    asyncio.run(call())
    return provider.requests[-1].headers


def test_strangers_do_not_learn_the_openai_organisation(
    provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-mine")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")

    headers = sent_headers(provider, ProviderConfig("x", provider.base_url))

    assert "openai-organization" not in headers
    assert "openai-project" not in headers
    assert headers["authorization"] == "Bearer none"


def test_the_key_and_given_headers_are_sent(provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_KEY", "sk-9")

    headers = sent_headers(
        provider, ProviderConfig("acme", provider.base_url, "ACME_KEY"), {"X-Redrive-Task": "task-1"}
    )

    assert headers["authorization"] == "Bearer sk-9"
    assert headers["x-redrive-task"] == "task-1"


def test_connections_are_used_again(provider: ScriptedProvider) -> None:
    async def calls() -> None:
        clients = Clients()
        for _ in range(5):
            config = ProviderConfig("x", provider.base_url)
            await run_prompt(clients=clients, provider=config, spec=SPEC, payload={}, calls=[])
        await clients.aclose()

    provider.script(lambda request, n: chat(request, "ok"))
    asyncio.run(calls())

    assert [request.connection for request in provider.requests] == [1] * 5
    assert provider.requests[-1].wait_closed()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_server_on_this_machine_is_not_looked_for_behind_the_proxy(
    provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)

    sent_headers(provider, ProviderConfig("local", f"http://{host}:{provider.port}/v1"))

    assert len(provider.requests) == 1
