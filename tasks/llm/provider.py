"""Clients of the providers, one for each endpoint and key, shared by all calls of a process."""

from __future__ import annotations

import os
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Omit

from tasks.environment import is_reserved
from tasks.errors import ConfigurationFault
from tasks.errors.known import remember
from tasks.llm.bounds import PLAIN, bound
from tasks.llm.gate import keep_back
from tasks.llm.request import ProviderConfig

#: The engine's own clocks bound a call; only connecting has a limit here, as no token can come before it.
TIMEOUT = httpx2.Timeout(None, connect=10.0)
#: Slots bound the calls, not the pool. Idle connections go before the five seconds after which common servers close
#: them, since a request sent into that moment would fail.
LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=4.0)
#: What servers without keys are sent, as the SDK insists on one.
NO_KEY = "none"


def api_key(provider: ProviderConfig) -> str:
    """The provider's key from the environment, or from the file that NAME_FILE names.

    Raises ConfigurationFault that names the variable, never the value, if it is missing, cannot be a key, or is not a
    provider's to have.
    """
    name = provider.api_key_env
    if not name:
        return NO_KEY
    if is_reserved(name):
        raise ConfigurationFault(
            f"provider {provider.name!r} names {name} for its key, a setting of Redrive or of the system, which is sent"
            " to no provider; keep the key in a variable of its own"
        )
    key = os.environ.get(name, "").strip() or _from_file(provider)
    if not key:
        raise ConfigurationFault(
            f"provider {provider.name!r} takes its key from the environment variable {name}, which is not set"
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigurationFault(f"the value of {name}, the key of provider {provider.name!r}, cannot be a key")
    # It may come back in the provider's refusal, and no form need give it away.
    remember(key)
    return key


def _from_file(provider: ProviderConfig) -> str:
    variable = f"{provider.api_key_env}_FILE"
    path = os.environ.get(variable, "")
    if not path:
        return ""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationFault(
            f"{variable}, the key file of provider {provider.name!r}, cannot be read: {type(error).__name__}"
        ) from error


class Clients:
    """The clients of one event loop. The key is looked up at each call, so a rotated key needs no restart."""

    def __init__(self) -> None:
        self._clients: dict[tuple[ProviderConfig, str], AsyncOpenAI] = {}

    def get(self, provider: ProviderConfig) -> AsyncOpenAI:
        """The client for this endpoint. Raises ConfigurationFault for a missing key or an impossible address."""
        known = (provider, api_key(provider))
        if known not in self._clients:
            self._clients[known] = _client(*known)
        return self._clients[known]

    async def aclose(self) -> None:
        """Close all connections. Calls under way fail; to be called when none are."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()


def _client(provider: ProviderConfig, key: str) -> AsyncOpenAI:
    host = _host(provider)
    headers: dict[str, Any] = dict(PLAIN)
    if not (host == "openai.com" or host.endswith(".openai.com")):
        # The SDK would send the OPENAI_ORG_ID and OPENAI_PROJECT_ID of the environment to strangers.
        headers |= {"OpenAI-Organization": Omit(), "OpenAI-Project": Omit()}
    return AsyncOpenAI(
        api_key=key,
        base_url=provider.base_url,
        max_retries=0,
        timeout=TIMEOUT,
        default_headers=headers,
        http_client=DefaultAsyncHttpxClient(
            timeout=TIMEOUT,
            limits=LIMITS,
            # The proxy of the environment leads out; a server on this machine is not to be found behind it.
            trust_env=not _is_here(host),
            # A redirect would send prompts to an address that nobody configured.
            follow_redirects=False,
            event_hooks={"request": [keep_back], "response": [bound]},
        ),
    )


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _host(provider: ProviderConfig) -> str:
    try:
        parts = urlsplit(provider.base_url)
        host = parts.hostname if parts.scheme in {"http", "https"} and parts.port != 0 else None
    except ValueError:
        host = None
    if not host:
        raise ConfigurationFault(
            f"the address of provider {provider.name!r} must be an http or https URL, not {provider.base_url!r}"
        )
    return host
