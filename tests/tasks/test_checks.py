"""The system checks: each speaks when it must, with a hint, and is silent otherwise."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core import checks as django_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from pytest_django.fixtures import Settings

from tasks import checks, lifecycle
from tasks.configuration.load import load
from tests.factories import make_kind, make_provider, make_task, make_worker


def ids(found: list[django_checks.CheckMessage]) -> list[str | None]:
    assert all(message.hint for message in found)
    return [message.id for message in found]


def test_the_project_as_it_is_passes() -> None:
    call_command("check")


def test_the_checks_are_registered() -> None:
    run = django_checks.registry.registry.get_checks(include_deployment_checks=True)
    assert {
        checks.check_recorder,
        checks.check_secret_key,
        checks.check_times,
        checks.check_apps,
        checks.check_handlers,
    } <= set(run)


@pytest.mark.parametrize("count", [0, 2])
def test_exactly_one_recorder(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    module = importlib.import_module("tasks.lifecycle.recorder")  # the package has a function of the same name
    monkeypatch.setattr(module, "_recorders", list(module.registered_recorders()) * count)
    (message,) = checks.check_recorder()
    assert message.id == "tasks.E001"
    assert message.msg.startswith(f"{count} recorders of dead letters are registered")
    with pytest.raises(SystemCheckError, match=r"tasks\.E001"):
        call_command("check")


def test_a_deployment_needs_a_secret_key(settings: Settings) -> None:
    assert checks.check_secret_key() == []
    settings.SECRET_KEY = ""
    assert ids(checks.check_secret_key()) == ["tasks.E002"]


@pytest.mark.parametrize(
    ("lease", "watchdog", "drain", "told"),
    [
        (12.0, 10.0, 20.0, []),
        (4.0, 3.0, 5.0, []),
        (12.0, 12.0, 20.0, ["tasks.W001"]),
        (4.0, 10.0, 20.0, ["tasks.W001"]),
        (12.0, 10.0, 0.0, ["tasks.W002"]),
    ],
)
def test_times_fit_together(settings: Settings, lease: float, watchdog: float, drain: float, told: list[str]) -> None:
    settings.REDRIVE_LEASE_SECONDS = lease
    settings.REDRIVE_WATCHDOG_SECONDS = watchdog
    settings.REDRIVE_DRAIN_SECONDS = drain
    assert ids(checks.check_times()) == told


def check_with_app(folder: Path, name: str) -> str:
    """What ``manage.py check`` says in a process of its own, with an app of the user's."""
    (folder / name / "__init__.py").touch()
    own = {"REDRIVE_APPS": name, "PYTHONPATH": str(folder), "DJANGO_SETTINGS_MODULE": "config.settings_test"}
    run = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=settings.BASE_DIR,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout + run.stderr


def test_an_app_of_the_users_own_brings_handlers(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "handlers.py").write_text("from tasks import handler\n\n\n@handler('own')\ndef own(ctx): ...\n")
    assert "System check identified no issues" in check_with_app(tmp_path, "own")


def test_an_app_without_handlers_is_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    told = check_with_app(tmp_path, "own")
    assert "(tasks.W003) REDRIVE_APPS names 'own', which has no module own.handlers." in told
    assert "HINT: Register handlers with @tasks.handler" in told


def test_a_question_about_no_handler_is_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    code = "from tasks import handler, reconcile\n@handler('own')\ndef own(ctx): ...\n"
    asks = "@reconcile('own')\ndef one(ctx): ...\n@reconcile('orphan')\ndef other(ctx): ...\n"
    (tmp_path / "own" / "handlers.py").write_text(code + asks)
    told = check_with_app(tmp_path, "own")
    assert "(tasks.W007) A reconcile function is registered for 'orphan', which no handler is named" in told
    assert told.count("W007") == 1


def manage_with_app(folder: Path, handlers: str, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A management command in a process of its own, with an app ``own`` whose handlers.py is this."""
    (folder / "own").mkdir(exist_ok=True)
    (folder / "own" / "__init__.py").touch()
    (folder / "own" / "handlers.py").write_text(handlers)
    own = {"REDRIVE_APPS": "own", "PYTHONPATH": str(folder), "DJANGO_SETTINGS_MODULE": "config.settings_test"}
    return subprocess.run(
        [sys.executable, "manage.py", *command],
        cwd=settings.BASE_DIR,
        env={**os.environ, **own, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


HANDLER = "from tasks import handler\n\n\n"
BROKEN = {
    "missing module": ("import nowhere_to_be_found\n", "ModuleNotFoundError: No module named 'nowhere_to_be_found' ("),
    "syntax": ("def (:\n", "SyntaxError: invalid syntax (handlers.py, line 1)."),
    "bug": (HANDLER + "PRICES = {}['gold']\n", "own/handlers.py, line 4)."),
    "taken name": (
        HANDLER + "@handler('django_q.call')\ndef mine(ctx): ...\n",
        "ValueError: The handler name 'django_q.call' is taken by tasks.handlers.django_q_call. (",
    ),
    "schema": (
        HANDLER + "@handler('own', payload_schema={'type': 'objekt'})\ndef mine(ctx): ...\n",
        "ValueError: The payload_schema of the handler 'own' cannot be used: the schema is wrong at type:",
    ),
}


@pytest.mark.parametrize(("handlers", "said"), BROKEN.values(), ids=BROKEN.keys())
def test_handlers_that_cannot_be_imported_are_told_with_their_app(tmp_path: Path, handlers: str, said: str) -> None:
    run = manage_with_app(tmp_path, handlers, "check")
    assert run.returncode == 1
    assert "(tasks.E004) The handlers of the app 'own' cannot be imported: " in run.stderr
    assert said in run.stderr
    assert "HINT: Correct its handlers.py, or take the app out of REDRIVE_APPS." in run.stderr


def test_workers_do_not_start_without_their_handlers_and_the_console_does(tmp_path: Path) -> None:
    """Their tasks would wait in silence; and people need the console to see what does."""
    broken = "import nowhere_to_be_found\n"
    run = manage_with_app(tmp_path, broken, "qcluster")
    assert (run.returncode, "tasks.E004" in run.stderr) == (1, True)
    console = "import config.asgi; from tasks.engine import registry; print(registry.names())"
    own = {"REDRIVE_APPS": "own", "PYTHONPATH": str(tmp_path), "DJANGO_SETTINGS_MODULE": "config.settings_test"}
    asked = subprocess.run(
        [sys.executable, "-c", console],
        cwd=settings.BASE_DIR,
        env={**os.environ, **own, "SECRET_KEY": "only-for-tests"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert asked.returncode == 0, asked.stderr
    assert "django_q.call" in asked.stdout
    assert "The handlers of the app 'own' cannot be imported." in asked.stderr


@pytest.mark.django_db
class TestDatabase:
    """Asked only with ``check --database default``, and by migrate."""

    def test_silent_without_a_database(self) -> None:
        assert checks.check_database(databases=None) == []

    def test_a_kind_whose_handler_nobody_registers(self) -> None:
        load('[[kind]]\nname = "sync"\nhandler = "no.such.handler"\n')
        (message,) = checks.check_database(databases=["default"])
        assert message.id == "tasks.W004"
        assert (
            message.msg == "The kind 'sync' is run by the handler 'no.such.handler', which no installed app registers."
        )

    def told(self) -> list[tuple[str | None, str]]:
        found = checks.check_database(databases=["default"])
        assert all(message.hint for message in found)
        return [(message.id, message.msg) for message in found]

    def test_a_provider_without_its_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of those that kinds use; and never the key itself."""
        monkeypatch.delenv("ACME_KEY_OF_TESTS", raising=False)
        for name in ("acme", "idle"):
            provider = make_provider(name, api_key_env="ACME_KEY_OF_TESTS")
        make_kind("sort", provider=make_provider("acme"), model="m", prompt="x")
        assert provider.name == "idle"
        said = (
            "Kinds use a provider without a key: provider 'acme' takes its key from the environment variable"
            " ACME_KEY_OF_TESTS, which is not set."
        )
        assert self.told() == [("tasks.W005", said)]
        monkeypatch.setenv("ACME_KEY_OF_TESTS", "wombat-forty-two")
        assert self.told() == []

    def test_tasks_that_wait_for_a_worker_that_nobody_started(self) -> None:
        kind = make_kind("sort", provider=make_provider("acme"), model="m", prompt="x")
        assert self.told() == []
        make_task(kind=kind)
        assert self.told() == [("tasks.W006", "Tasks of the kind 'sort' wait, and no live worker process runs it.")]
        make_worker(lease=-1)
        assert [id for id, _ in self.told()] == ["tasks.W006"]
        make_worker()
        assert self.told() == []

    def test_paused_kinds_wait_for_a_person(self) -> None:
        make_task(kind=make_kind("sort", provider=make_provider("acme"), model="m", prompt="x"))
        lifecycle.pause_kind("sort", by="ana", reason="not now")
        assert self.told() == []

    def test_an_old_server(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(checks, "MINIMUM_POSTGRESQL", 99)
        (message,) = checks.check_database(databases=["default"])
        assert message.id == "tasks.E003"
        assert "99 or newer is needed" in message.msg
