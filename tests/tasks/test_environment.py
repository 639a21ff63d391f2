"""Which variables of a worker are no provider's key."""

from __future__ import annotations

import ast

import pytest

from tasks.environment import is_reserved
from tests.sources import modules

READERS = {"text", "flag", "integer", "seconds", "words"}


def settings_read() -> set[str]:
    """Every variable that the settings are read from."""
    return {
        node.args[0].value
        for name, tree in modules().items()
        if name.startswith("config/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in READERS
        and ast.unparse(node.func.value) == "env"
        and isinstance(node.args[0], ast.Constant)
    }


def test_every_setting_of_ours_is_refused_also_as_a_file() -> None:
    names = settings_read()
    assert {"SECRET_KEY", "DATABASE_URL", "REDRIVE_OPERATOR_PASSWORD", "DEBUG"} <= names
    assert len(names) > 10
    assert {name for name in names if not (is_reserved(name) and is_reserved(f"{name}_FILE"))} == set()


@pytest.mark.parametrize(
    "name",
    [
        *("REDRIVE_ANYTHING", "DJANGO_SETTINGS_MODULE", "PGPASSWORD", "PGPASSFILE", "POSTGRES_PASSWORD"),
        *("PATH", "HOME", "LD_PRELOAD", "DYLD_LIBRARY_PATH", "PYTHONPATH", "HTTPS_PROXY", "http_proxy", "REDIS_URL"),
        *("SENTRY_DSN", "secret_key", "Secret_Key_File", "SECRET_KEY_FILE_FILE", "AWS_SECRET_ACCESS_KEY"),
        *("AWS_WEB_IDENTITY_TOKEN_FILE", "SSH_AUTH_SOCK"),
    ],
)
def test_what_is_refused(name: str) -> None:
    assert is_reserved(name)


@pytest.mark.parametrize(
    "name",
    [
        *("OPENAI_API_KEY", "OPENAI_API_KEY_FILE", "ACME_KEY", "GROQ_API_KEY", "HF_TOKEN", "AZURE_OPENAI_API_KEY"),
        *("AWS_BEARER_TOKEN_BEDROCK", "MY_SECRET_KEY", "LLM_PASSWORD", "KEY", "OPENROUTER_API_KEY"),
    ],
)
def test_what_may_hold_a_key(name: str) -> None:
    assert not is_reserved(name)
