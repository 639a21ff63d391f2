"""``manage.py`` as a person types it: what the person can mend is one sentence, not a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sources import ROOT


def manage(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """One command in a process of its own, with nothing set but what is given."""
    clean = {"PATH": os.environ["PATH"], "SECRET_KEY": "only-for-tests", "DJANGO_SETTINGS_MODULE": "config.settings"}
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT, env=clean | environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("REDRIVE_WORKERS", "abc", "REDRIVE_WORKERS is 'abc'; it must be a whole number."),
        ("DATABASE_URL", "mysql://x", "DATABASE_URL"),
        ("DEBUG", "maybe", "DEBUG is 'maybe'; use one of"),
        ("REDRIVE_APPS", "nix.inner", "REDRIVE_APPS names nix, which cannot be imported."),
    ],
)
@pytest.mark.parametrize("command", ["check", "up"])
def test_a_bad_setting_is_a_sentence(command: str, name: str, value: str, told: str, tmp_path: Path) -> None:
    run = manage(command, REDRIVE_DATA_DIR=str(tmp_path), **{name: value})
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith(told)
    assert len(run.stderr.splitlines()) == 1


def test_traceback_shows_the_whole_story() -> None:
    run = manage("check", "--traceback", REDRIVE_WORKERS="abc")
    assert run.returncode == 1
    assert run.stderr.startswith("Traceback")
    assert "REDRIVE_WORKERS is 'abc'" in run.stderr


def test_a_fault_inside_an_app_keeps_its_traceback(tmp_path: Path) -> None:
    (tmp_path / "shop_of_tests.py").write_text("import nowhere_to_be_found\n")
    run = manage("check", REDRIVE_APPS="shop_of_tests", PYTHONPATH=str(tmp_path))
    assert run.returncode == 1
    assert run.stderr.startswith("Traceback")
    assert "shop_of_tests.py" in run.stderr


@pytest.mark.parametrize("port", ["0", "80170", "-1"])
def test_a_port_that_cannot_be_is_a_sentence(port: str, tmp_path: Path) -> None:
    run = manage("up", "--port", port, "--data-dir", str(tmp_path / "data"))
    assert run.returncode == 1
    assert run.stderr == f"CommandError: --port is {port}; it must be from 1 to 65535.\n"
    assert not (tmp_path / "data").exists()


def test_ctrl_c_while_the_modules_load_is_quiet(tmp_path: Path) -> None:
    """An app that says when it is being imported, and waits, is the signal's moment."""
    (tmp_path / "slow_of_tests.py").write_text("import signal\nprint('loading', flush=True)\nsignal.pause()\n")
    environment = {**os.environ, "REDRIVE_APPS": "slow_of_tests", "PYTHONPATH": str(tmp_path)}
    pipe = subprocess.PIPE
    command = [sys.executable, "manage.py", "check"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "loading\n"
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=30) == ("", "")
        finally:
            process.kill()
    assert process.returncode == 130


def test_ctrl_c_while_python_starts_is_heard_once_it_can_be_quiet() -> None:
    """As ``up`` begins anew: with the signal held back."""
    begin_anew = (
        "import os, signal, sys\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "os.execv(sys.executable, [sys.executable, 'manage.py', 'check'])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", begin_anew], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "")


def test_what_a_visitor_does_wrong_is_not_logged(tmp_path: Path) -> None:
    """And what we do wrong is."""
    code = (
        "import django; from django.conf import settings\n"
        # nothing was collected here
        "settings.STORAGES['staticfiles']['BACKEND'] = 'django.contrib.staticfiles.storage.StaticFilesStorage'\n"
        "django.setup()\n"
        "from django.test import Client; from django.urls import path; from config import urls\n"
        "def fall(request): raise RuntimeError('ours')\n"
        "urls.urlpatterns += [path('fall/', fall)]\n"
        "client = Client(raise_request_exception=False)\n"
        "paths = {'/nowhere/': 'localhost', '/login/': 'evil.example', '/fall/': 'localhost'}\n"
        "print([client.get(path, headers={'host': host}).status_code for path, host in paths.items()])\n"
    )
    environment = {"SECRET_KEY": "only-for-tests", "DJANGO_SETTINGS_MODULE": "config.settings"}
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT, env=environment | {"REDRIVE_DATA_DIR": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.stdout == "[404, 400, 500]\n", run.stderr
    assert "Not Found" not in run.stderr
    assert "evil.example" not in run.stderr
    assert "RuntimeError: ours" in run.stderr
