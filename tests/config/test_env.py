"""Settings from the environment: what is read, and that no error tells a secret."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import database, env
from tests.sources import ROOT

SECRET = "hunter2"
#: DATABASE_URLs with a password that breaks them; libpq's own complaint quotes it, or takes it for host or port.
BROKEN = [
    f"postgresql://redrive:{SECRET}%zz@db/redrive",
    f"postgresql://redrive:{SECRET} x@db/redrive",
    f"postgresql://redrive:x@{SECRET}@db/redrive",
    f"postgresql://redrive:{SECRET}/x@db/redrive",
    f"postgresql://redrive:1234/{SECRET}@db:5432/redrive",
    f"mysql://redrive:{SECRET}@db/redrive",
    f"host=db dbname=redrive password={SECRET} x",
    SECRET,
]


def said(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """What Python prints of the error that reading a setting ends in."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    name = next(iter(environment)).removesuffix("_FILE")
    with pytest.raises(ImproperlyConfigured) as caught:
        if name == "DATABASE_URL":
            database.from_environment(Path("/nowhere"))
        elif name == "REDRIVE_LISTEN_URL":
            database.listener()
        elif name == "REDRIVE_SLOTS":
            env.integer(name, 50, maximum=100)
        elif name == "DEBUG":
            env.flag(name)
        else:
            env.text(name)
    return "".join(traceback.format_exception(caught.value))


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the settings of whoever runs the tests."""
    for name in ("DATABASE_URL", "REDRIVE_LISTEN_URL", "REDRIVE_SLOTS", "SECRET_KEY", "DEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("url", BROKEN)
@pytest.mark.parametrize("variable", ["DATABASE_URL", "REDRIVE_LISTEN_URL"])
def test_a_broken_database_url_is_refused_without_its_password(
    variable: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = said({variable: url}, monkeypatch)
    assert f"{variable} is not a PostgreSQL URL (postgresql://user:password@host:5432/name)." in told
    assert "percent-encoded" in told
    assert SECRET not in told


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://u:p%40%2Fp@db:5433/name", {"HOST": "db", "PORT": "5433", "PASSWORD": "p@/p", "NAME": "name"}),
        ("postgresql://u:p?#:p@db/name", {"HOST": "db", "PASSWORD": "p?#:p", "NAME": "name"}),
        ("postgresql://u@a:1,b:2/name", {"HOST": "a,b", "PORT": "1,2", "NAME": "name"}),
        ("postgresql://[::1]:5432/name", {"HOST": "::1", "PORT": "5432", "NAME": "name"}),
        ("postgresql:///name?host=/run/pg&password=p@p", {"HOST": "/run/pg", "PASSWORD": "p@p", "NAME": "name"}),
        ("host=db dbname=name password=p@p", {"HOST": "db", "PASSWORD": "p@p", "NAME": "name"}),
    ],
)
def test_a_database_url_is_read(url: str, expected: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    read = database.from_environment(Path("/nowhere"))
    assert {name: read.get(name) for name in expected} == expected


def test_session_options_are_sent_but_not_to_pgbouncer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://u@db/name?sslmode=require")
    direct = database.from_environment(Path("/nowhere"))
    pooled = database.from_environment(Path("/nowhere"), pgbouncer=True)
    assert "statement_timeout=30s" in direct["OPTIONS"]["options"]
    assert "options" not in pooled["OPTIONS"]
    assert pooled["OPTIONS"]["prepare_threshold"] is None
    assert pooled["DISABLE_SERVER_SIDE_CURSORS"] is True
    assert direct["OPTIONS"]["sslmode"] == pooled["OPTIONS"]["sslmode"] == "require"


def test_the_embedded_server_is_never_behind_pgbouncer() -> None:
    assert "statement_timeout=30s" in database.from_environment(Path("/nowhere"), pgbouncer=True)["OPTIONS"]["options"]


def test_who_listens_may_have_an_address_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert database.listener() == {}
    monkeypatch.setenv("REDRIVE_LISTEN_URL", "postgresql://u:p%40@db:5433/name")
    told = database.listener()
    assert (told["host"], told["port"], told["user"], told["password"], told["dbname"]) == (
        *("db", "5433", "u", "p@"),
        "name",
    )
    assert "statement_timeout=30s" in told["options"]


@pytest.mark.parametrize(
    ("settings", "notify"),
    [
        ({}, "True"),
        ({"REDRIVE_NOTIFY": "off"}, "False"),
        ({"REDRIVE_PGBOUNCER": "on"}, "False"),
        ({"REDRIVE_PGBOUNCER": "on", "REDRIVE_LISTEN_URL": "postgresql://db/name"}, "True"),
        ({"REDRIVE_NOTIFY": "off", "REDRIVE_LISTEN_URL": "postgresql://db/name"}, "False"),
    ],
    ids=["direct", "off", "pooled", "pooled-with-listener", "off-with-listener"],
)
def test_nobody_is_notified_where_nobody_can_listen(settings: dict[str, str], notify: str) -> None:
    code = "from config import settings; print(settings.REDRIVE_NOTIFY)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=settings, capture_output=True, text=True)
    assert run.stdout.strip() == notify, run.stderr


def test_a_process_with_a_broken_database_url_prints_no_password() -> None:
    run = subprocess.run(
        [sys.executable, "manage.py", "migrate"],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": BROKEN[0], "DJANGO_SETTINGS_MODULE": "config.settings"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode != 0
    assert "DATABASE_URL is not a PostgreSQL URL" in run.stderr
    assert SECRET not in run.stderr + run.stdout


def test_a_secret_given_as_the_path_of_a_file_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    told = said({"SECRET_KEY_FILE": SECRET}, monkeypatch)
    assert "SECRET_KEY_FILE must be the path of a file with the value; it cannot be read: No such file" in told
    assert SECRET not in told


def test_a_file_that_is_no_text_is_refused_without_its_content(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\xff" + SECRET.encode())
    told = said({"SECRET_KEY_FILE": str(tmp_path / "key")}, monkeypatch)
    assert "SECRET_KEY_FILE must be the path of a file with the value; it cannot be read: it is no UTF-8 text." in told
    assert "0xff" not in told


@pytest.mark.parametrize(("name", "content"), [("REDRIVE_SLOTS", SECRET), ("REDRIVE_SLOTS", "4711"), ("DEBUG", SECRET)])
def test_a_wrong_file_is_refused_without_its_content(
    name: str, content: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "other").write_text(content)
    told = said({f"{name}_FILE": str(tmp_path / "other")}, monkeypatch)
    assert f"{name} is what the file of {name}_FILE holds; " in told
    assert content not in told


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("REDRIVE_SLOTS", "many", "REDRIVE_SLOTS is 'many'; it must be a whole number."),
        ("REDRIVE_SLOTS", "101", "REDRIVE_SLOTS is '101'; it must be from 0 to 100."),
        ("DEBUG", "perhaps", "DEBUG is 'perhaps'; use one of 1, true, yes, on, 0, false, no, off."),
    ],
)
def test_a_wrong_value_is_told(name: str, value: str, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sentence in said({name: value}, monkeypatch)


def test_a_value_comes_from_the_variable_then_from_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(" from the file \n")
    monkeypatch.setenv("SECRET_KEY_FILE", str(tmp_path / "key"))
    assert env.text("SECRET_KEY") == "from the file"
    monkeypatch.setenv("SECRET_KEY", "itself")
    assert env.text("SECRET_KEY") == "itself"


def test_an_empty_value_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a container's file gives it: NAME=${NAME:-}."""
    (tmp_path / "key").write_text("from the file\n")
    monkeypatch.setenv("REDRIVE_THING", "")
    assert env.text("REDRIVE_THING", "default") == "default"
    monkeypatch.setenv("REDRIVE_THING_FILE", str(tmp_path / "key"))
    assert env.text("REDRIVE_THING", "default") == "from the file"
