"""The rows that the demo needs: its provider, its kinds, and a real provider where the environment has a key."""

from __future__ import annotations

import re
from collections.abc import Mapping

from django.core.exceptions import ValidationError
from django.db import transaction

from tasks.demo.kinds import COMMON, KINDS
from tasks.models import Kind, Provider

SIMULATED = "simulated"
OPENAI = "openai"
OPENAI_URL = "https://api.openai.com/v1"
#: Addresses of the demo's own provider; its port may have been another one.
OWN_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/fault/demo/v1\Z")


def configure(base_url: str, environment: Mapping[str, str]) -> list[str]:
    """Makes what is missing, in one transaction; may be run any number of times. What to tell a person, in sentences.

    The demo's own provider follows ``base_url``. Kinds that exist are a person's by now and are left alone, and so is a
    provider whose address a person has changed.
    """
    with transaction.atomic():
        notes = _keep_simulated(base_url)
        if has_openai_key(environment):
            notes += _keep_openai(environment)
    return notes


def has_openai_key(environment: Mapping[str, str]) -> bool:
    """Whether the workers will find a key: the variable itself, or the file that it is in."""
    return bool(environment.get("OPENAI_API_KEY") or environment.get("OPENAI_API_KEY_FILE"))


def _keep_simulated(base_url: str) -> list[str]:
    provider = _locked(SIMULATED) or Provider.objects.create(name=SIMULATED, base_url=base_url, simulated=True)
    if not (provider.simulated or OWN_ADDRESS.match(provider.base_url)):
        return [
            f"provider {SIMULATED} has an address of yours and is left alone, and so are kinds: no demo task is sent "
            f"there. To give it back to the demo, set its address to {base_url} and start the demo again."
        ]
    if (provider.base_url, provider.simulated) != (base_url, True):
        provider.base_url, provider.simulated = base_url, True
        provider.save(update_fields=["base_url", "simulated", "updated_at"])
    for name, fields in KINDS.items():
        Kind.objects.get_or_create(name=name, defaults={"provider": provider, **COMMON, **fields})
    return []


def _keep_openai(environment: Mapping[str, str]) -> list[str]:
    """The provider for real calls. No kind is given it: a person chooses, and only then does it cost money.

    The addresses are not repeated: one that is mistyped may hold a password.
    """
    wanted = environment.get("OPENAI_BASE_URL", "").strip()
    provider = _locked(OPENAI)
    if provider is None:
        provider = Provider(name=OPENAI, base_url=wanted or OPENAI_URL, api_key_env="OPENAI_API_KEY")
        try:
            provider.full_clean()
        except ValidationError as error:
            return [f"no provider {OPENAI} was made, OPENAI_BASE_URL is not usable: {' '.join(error.messages)}"]
        provider.save(force_insert=True)
    model = environment.get("OPENAI_MODEL") or "of your choice"
    notes = [
        f"provider {OPENAI} is there too: give it to a kind in the admin, with the model {model}, and that kind's "
        "tasks call it. The trickle leaves such a kind alone."
    ]
    if wanted and provider.base_url != wanted:
        notes.append(
            f"provider {OPENAI} keeps the address that it has; OPENAI_BASE_URL names another. Change it in the admin, "
            "if you mean to."
        )
    return notes


def _locked(name: str) -> Provider | None:
    """The provider, locked until the commit, so that a person's change at this moment is seen and kept."""
    return Provider.objects.select_for_update(no_key=True).filter(pk=name).first()
