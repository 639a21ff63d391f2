"""``manage.py loadconfig`` and ``dumpconfig`` as a person meets them."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from tasks.management.commands.loadconfig import MAX_BYTES
from tasks.models import Kind, OperatorAction

FILE = """
[[provider]]
name = "local"
base_url = "http://ollama:11434/v1"

[[kind]]
name = "ticket.triage"
provider = "local"
model = "small"
prompt = "Sort this: {{ text }}"
concurrency_limit = 3
"""


def loaded(path: Path) -> list[str]:
    out = io.StringIO()
    call_command("loadconfig", str(path), stdout=out)
    return out.getvalue().splitlines()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "redrive.toml"
    path.write_text(FILE)
    return path


@pytest.mark.django_db
def test_it_says_what_became_of_each_row(file: Path) -> None:
    assert loaded(file) == [
        "provider local: created",
        "kind ticket.triage: created; prompt version 1",
    ]
    assert loaded(file) == ["provider local: unchanged", "kind ticket.triage: unchanged"]


@pytest.mark.django_db
def test_a_load_that_changes_something_is_audited(file: Path) -> None:
    loaded(file)
    loaded(file)
    (action,) = OperatorAction.objects.all()
    assert (action.action, action.count, action.outcome) == ("load_configuration", 2, "done")
    assert action.username.endswith("(loadconfig)")
    assert action.data == {"changes": ["provider local: created", "kind ticket.triage: created; prompt version 1"]}


@pytest.mark.django_db
def test_a_bad_file_is_refused_with_every_problem(file: Path) -> None:
    file.write_text(FILE.replace("small", "").replace("concurrency_limit", "concurrency"))
    with pytest.raises(CommandError) as caught:
        loaded(file)
    told = str(caught.value).splitlines()
    assert told[0] == f"{file} was not loaded; 2 problems:"
    assert told[1].startswith("  line 9: kind ticket.triage: model: is missing")
    assert told[2] == (
        "  line 11: kind ticket.triage: concurrency: there is no key 'concurrency'; did you mean concurrency_limit?"
    )
    assert not Kind.objects.exists()
    assert not OperatorAction.objects.exists()


@pytest.mark.parametrize(
    ("content", "told"),
    [(None, "cannot be read: No such file or directory"), (b"\xff\xfe[", "is no UTF-8 text (line 1, byte 0)")],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes | None, told: str) -> None:
    path = tmp_path / "redrive.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CommandError) as caught:
        loaded(path)
    assert told in str(caught.value)


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read: Is a directory"):
        loaded(tmp_path)


def test_a_file_without_end_is_not_read_to_its_end() -> None:
    with pytest.raises(CommandError, match=f"/dev/zero was not loaded: it is larger than {MAX_BYTES} bytes"):
        loaded(Path("/dev/zero"))


def test_the_line_of_a_byte_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "redrive.toml"
    path.write_bytes(b"[[kind]]\nname = 'a'\nmodel = '\xe9'\n")
    with pytest.raises(CommandError, match=r"line 3, byte 29"):
        loaded(path)


@pytest.mark.django_db
def test_a_refusal_of_the_database_is_one_sentence(file: Path) -> None:
    """What no check foresaw, such as a row that came meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tasks_kind ADD CONSTRAINT nothing_small CHECK (model <> 'small')")
    with pytest.raises(CommandError) as caught:
        loaded(file)
    assert "was not loaded; the database refused it" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert not Kind.objects.exists()


def run(url: str, *command: str, given: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DATABASE_URL": url, "SECRET_KEY": "only-for-tests"}
    return subprocess.run(
        [sys.executable, "manage.py", *command],
        cwd=settings.BASE_DIR,
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.django_db(transaction=True)
def test_from_the_standard_input_and_back(test_database_url: str) -> None:
    assert run(test_database_url, "loadconfig", "-", given=FILE).stdout.startswith("provider local: created\n")
    dumped = run(test_database_url, "dumpconfig").stdout
    again = run(test_database_url, "loadconfig", "-", given=dumped)
    assert again.stdout.splitlines()[:2] == ["provider local: unchanged", "kind ticket.triage: unchanged"]
    assert again.returncode == 0


def test_without_a_database_one_sentence_says_what_to_do(tmp_path: Path) -> None:
    refused = run("postgresql://nobody@127.0.0.1:9/none", "loadconfig", "-", given=FILE)
    assert refused.returncode == 1
    assert refused.stderr.startswith("CommandError: - was not loaded: ")
    assert "Traceback" not in refused.stderr
