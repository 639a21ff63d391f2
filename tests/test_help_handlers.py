"""The help page on handlers, followed to the letter: its files are written, its commands are run, its errors raised."""

from __future__ import annotations

import asyncio
import html
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.template.loader import render_to_string

from deadletters.models import DeadLetter
from tasks import errors, lifecycle
from tasks.engine import registry
from tasks.engine.context import Context
from tasks.models import AttemptLog, Kind, ModelCall, Task
from tests.chat import chat
from tests.cluster import QCluster, wait_until
from tests.provider import ScriptedProvider
from tests.site import serve
from tests.sources import ROOT
from tests.tasks.api.keys import make_key
from tests.tasks.engine import bench

PAGE = render_to_string("help/handlers.html", {"title": "A handler of your own"})
ADDRESS = "http://127.0.0.1:11434/v1"
ORDER = {"customer": "Ana", "amounts": [12.5, 7]}
RESULT = {"total": 19.5, "unusual": False, "why": "It is small."}


class _Blocks(HTMLParser):
    """The code blocks of a page: (attributes, text)."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[dict[str, str | None], str]] = []
        self._open: dict[str, str | None] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "pre":
            self._open = dict(attrs)
            self.found.append((self._open, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "pre":
            self._open = None

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self.found[-1] = (self._open, self.found[-1][1] + data)


def blocks() -> list[tuple[dict[str, str | None], str]]:
    parser = _Blocks()
    parser.feed(PAGE)
    return parser.found


def block(attribute: str, value: str) -> str:
    """The one block that is marked so."""
    (found,) = [text for attributes, text in blocks() if attributes.get(attribute) == value]
    return found


def test_every_block_is_one_that_is_followed() -> None:
    known = {"data-run", "data-file", "data-start", "data-python", "data-says"}
    assert [text for attributes, text in blocks() if not known & attributes.keys()] == []
    assert {attributes["data-run"] for attributes, _ in blocks() if "data-run" in attributes} == {
        *("1", "2", "3", "4", "refused", "http")
    }


class Reader:
    """Does what the page says, in a folder with ``manage.py`` in it, on the test database."""

    def __init__(self, folder: Path, database_url: str, provider: ScriptedProvider) -> None:
        self.folder = folder
        self.provider = provider
        (folder / "manage.py").symlink_to(ROOT / "manage.py")
        kept = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
        self.environment = {
            **kept,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": f"{folder}:{ROOT}",
            "DATABASE_URL": database_url,
            "SECRET_KEY": "only-for-tests",
        }

    def run(self, name: str, text: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        """Type a block into a shell."""
        return subprocess.run(
            ["bash", "-ec", block("data-run", name) if text is None else text],
            cwd=self.folder,
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def write_files(self) -> None:
        """Put each file where the page says, with our address of a model in the place of the page's."""
        for attributes, text in blocks():
            if name := attributes.get("data-file"):
                with (self.folder / name).open("a" if "data-append" in attributes else "w") as file:
                    file.write(text.replace(ADDRESS, self.provider.base_url))


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as scripted:
        opinion = '{"unusual": false, "why": "It is small."}'
        scripted.script(lambda request, n: chat(request, opinion if "Schema" in str(request) else "Dear Ana, …"))
        yield scripted


@pytest.fixture
def reader(tmp_path: Path, test_database_url: str, provider: ScriptedProvider) -> Reader:
    made = Reader(tmp_path, test_database_url, provider)
    assert made.run("1").returncode == 0
    made.write_files()
    return made


@pytest.mark.django_db(transaction=True)
def test_from_an_empty_folder_to_a_task_that_asks_a_model(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    configured = reader.run("2")
    assert configured.returncode == 0, configured.stderr
    assert "System check identified no issues" in configured.stdout
    assert block("data-start", "up") == "python manage.py up", "of which the cluster is the part that matters here"
    with QCluster(reader.environment["DATABASE_URL"], REDRIVE_APPS="shop", PYTHONPATH=reader.folder) as cluster:
        cluster.wait_ready()
        submitted = reader.run("3", REDRIVE_APPS="shop")
        assert (submitted.returncode, submitted.stderr.splitlines()[-1:]) == (0, ["1 task: 1 succeeded."]), submitted
        task = Task.objects.get(pk=submitted.stdout.strip())
        assert (task.payload, task.result, task.subject) == (ORDER, RESULT, "Ana")
        assert list(AttemptLog.objects.values_list("text", flat=True)) == [
            "added up  amounts=2  total=19.5",
            "the model answered  unusual=false",
        ]
        assert ModelCall.objects.get().provider_name == "local"
        assert reader.provider.requests[0].json["model"] == "llama3.2"
        _remind(reader)
        _submit_from_python(reader)
        _submit_over_http(reader, monkeypatch)
        wait_until(lambda: Task.objects.filter(result=RESULT).count() == 3, "all of them done")
    assert not DeadLetter.objects.exists()


def _remind(reader: Reader) -> None:
    """The sync handler."""
    Kind.objects.create(name="remind", handler="invoice.remind", provider_id="local", model="llama3.2")
    task = lifecycle.submit("remind", ORDER)
    wait_until(lambda: Task.objects.get(pk=task.pk).status == "succeeded", "the reminder")
    assert Task.objects.get(pk=task.pk).result == "Dear Ana, …"


def _submit_from_python(reader: Reader) -> None:
    code = block("data-python", "submit")
    run = reader.run("", f"python manage.py shell --no-imports -c '{code}'", REDRIVE_APPS="shop")
    assert run.returncode == 0, run.stderr


def _submit_over_http(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRIVE_APPS", "shop")
    monkeypatch.setenv("PYTHONPATH", str(reader.folder))
    command = block("data-run", "http")
    with serve(reader.environment["DATABASE_URL"]) as (url, _process):
        sent = reader.run("", command.replace("http://127.0.0.1:8000", url), KEY=make_key())
        assert (sent.returncode, '"status": "ready"' in sent.stdout) == (0, True), sent
        wrong = command.replace("7]", '"7"]').replace("http://127.0.0.1:8000", url)
        refused = reader.run("", wrong, KEY=make_key(name="other"))
    assert refused.returncode == 22, refused
    assert '"field": "payload.amounts[1]"' in refused.stdout


@pytest.mark.django_db(transaction=True)
def test_what_does_not_fit_is_refused_in_the_words_of_the_page(reader: Reader) -> None:
    assert reader.run("2").returncode == 0
    refused = reader.run("refused", REDRIVE_APPS="shop")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.splitlines()[0] == block("data-says", "refused")
    assert not Task.objects.exists()


def test_its_test_passes_and_can_fail(reader: Reader) -> None:
    passed = reader.run("4")
    assert passed.returncode == 0 and "1 passed" in passed.stdout, passed
    handlers = reader.folder / "shop" / "handlers.py"
    # Of another length: a compiled file of the same second and size would be taken for this one.
    handlers.write_text(handlers.read_text().replace("sum(", "1 + sum("))
    assert "1 failed" in reader.run("4").stdout


ROWS = re.findall(r'<tr data-raise="(\w+)"><td><code>(.*?)</code></td><td><code>(\w+)</code></td>', PAGE)


@pytest.mark.django_db
@pytest.mark.parametrize(("status", "raised", "code"), ROWS, ids=[raised.partition("(")[0] for _, raised, _ in ROWS])
def test_what_is_raised_leads_where_the_page_says(
    monkeypatch: pytest.MonkeyPatch, status: str, raised: str, code: str
) -> None:
    monkeypatch.setattr(registry, "_handlers", dict(registry._handlers))

    @registry.handler("on.the.bench")
    async def handler(context: Context) -> Any:
        await asyncio.sleep(0)
        raise eval(html.unescape(raised), {**vars(errors)})  # noqa: S307 - our own page

    done = bench.attempt(Kind.objects.create(name="bench", handler="on.the.bench"))
    assert (done.error_code, done.task.status) == (code, status)
    if "30" in raised:
        assert (done.outcome, done.decision["delay_seconds"]) == ("snoozed", 30)


def test_the_table_was_read() -> None:
    assert len(ROWS) == PAGE.count("data-raise") >= 7


def test_every_name_of_the_context_exists() -> None:
    named = set(re.findall(r"ctx\.(\w+)", PAGE))
    assert {name for name in named if name not in Context.__dataclass_fields__ and not hasattr(Context, name)} == set()
    public = {name for name in {*Context.__dataclass_fields__, *vars(Context)} if not name.startswith("_")}
    assert public - named == set(), "and every one is explained"
