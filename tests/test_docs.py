"""What README and the help pages name exists, and what exists is named there."""

from __future__ import annotations

import ast
import html
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from django.core.management import get_commands, load_command_class
from django.urls import Resolver404, resolve

import tasks
from tasks.configuration.keys import NOT_YET_ENFORCED, TABLES
from tasks.configuration.load import load
from tasks.models import Kind
from tests.sources import ROOT, files, modules

README = (ROOT / "README.md").read_text("utf-8")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")
HELP = "\n".join(path.read_text("utf-8") for path in files("templates/help", suffix=".html"))
DOCS = pytest.mark.parametrize("text", [pytest.param(README, id="README"), pytest.param(HELP, id="help")])

COMMAND_ONE = "python3 -m venv .venv && .venv/bin/pip install --quiet -e . && .venv/bin/python manage.py up --demo"
COMMAND_TWO = "python3 -m venv .venv && .venv/bin/pip install --quiet -e '.[test]' && .venv/bin/pytest"


def blocks(language: str) -> list[str]:
    """The code blocks of README in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def settings_read() -> set[str]:
    """Every environment variable that the configuration reads."""
    return {
        node.args[0].value
        for name, tree in modules().items()
        if name.startswith("config/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).startswith("env.")
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    }


def settings_table() -> dict[str, str]:
    """Variable -> default, of README's table."""
    rows = re.findall(r"^\| `([A-Z_]+)` \|([^|]*)\|", README, re.MULTILINE)
    return {name: default.strip(" `") for name, default in rows}


def commands_named(text: str) -> Iterator[tuple[str, list[str]]]:
    """(name, options) of every management command in a text."""
    for name, rest in re.findall(r"manage\.py ([a-z]\w*)([^\n<&|]*)", text):
        yield name, re.findall(r"(?<=\s)--[a-z][a-z-]*", rest)


def test_the_two_commands_stand_there_as_they_are() -> None:
    assert [block.strip() for block in blocks("sh")[:2]] == [COMMAND_ONE, COMMAND_TWO]


def test_ci_runs_the_test_command_of_the_readme() -> None:
    ci = (ROOT / ".ci" / "run").read_text("utf-8")
    _, install, test = COMMAND_TWO.split(" && ")
    assert install in ci
    assert f" {test} " in ci


@DOCS
def test_every_command_exists_with_its_options(text: str) -> None:
    known = get_commands()
    named = list(commands_named(text))
    assert named
    for name, options in named:
        assert name in known, name
        parser = load_command_class(known[name], name).create_parser("manage.py", name)
        assert set(options) <= set(parser._option_string_actions), name


#: What is measured and drilled: (module of tests, what it is told to do).
TOOLS = re.findall(r"^python -m (tests\.\w+) (\w+)", README, re.MULTILINE)


def test_the_readme_names_every_drill() -> None:
    from tests.drills.__main__ import DRILLS

    assert {word for module, word in TOOLS if module == "tests.drills"} == DRILLS.keys()


@pytest.mark.parametrize(("module", "word"), TOOLS)
def test_every_drill_and_benchmark_of_the_readme_can_be_called(module: str, word: str) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", module, word, "--help"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (run.returncode, run.stderr) == (0, "")


@DOCS
def test_every_decorator_takes_what_it_is_given(text: str) -> None:
    given = re.findall(r"@(handler|reconcile)\(([^)\n]*)\)", html.unescape(text))
    assert {name for name, _ in given} == {"handler", "reconcile"}
    for name, arguments in given:
        call = ast.parse(f"{name}({arguments.replace('…', '0')})", mode="eval").body
        assert isinstance(call, ast.Call)
        known = inspect.signature(getattr(tasks, name)).parameters
        assert {keyword.arg for keyword in call.keywords} <= set(known), arguments


def test_every_picture_exists_and_is_light() -> None:
    named = set(re.findall(r"!\[[^\]]{20,}\]\(([^)]+)\)", README))
    named |= {f"static/{name}" for name in re.findall(r"<img[^>]*\{% static '([^']+)' %\}", HELP)}
    assert named >= {"static/help/dead-letters-light.png", "static/help/tasks-light.png"}
    for name in named:
        picture = (ROOT / name).read_bytes()
        assert picture.startswith(b"\x89PNG") and len(picture) < 150_000, name
        assert (int.from_bytes(picture[16:20]), int.from_bytes(picture[20:24])) == (1280, 800), name


def test_every_command_of_ours_is_named() -> None:
    ours = {name for name, app in get_commands().items() if app in ("tasks", "deadletters")}
    named = {name for name, _ in commands_named(README)}
    # what up starts by itself
    assert ours - named <= {"demo"}


def test_every_setting_is_in_both_tables() -> None:
    read = settings_read()
    assert set(settings_table()) == read
    assert {name for name in read if f"<code>{name}</code>" not in HELP} == set()


def test_the_defaults_are_the_ones_in_the_table() -> None:
    """Read by a process with an empty environment, as the settings promise to allow."""
    names = [name for name, default in settings_table().items() if default]
    code = (
        "import json; from config import settings;"
        f" print(json.dumps({{name: getattr(settings, name, None) for name in {names!r}}}, default=str))"
    )
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, cwd=ROOT, env={}, capture_output=True, text=True, check=True)
    values = json.loads(run.stdout)
    shown = {
        **{name: str(value).removesuffix(".0") for name, value in values.items()},
        **{name: "on" if value else "off" for name, value in values.items() if isinstance(value, bool)},
        "ALLOWED_HOSTS": ",".join(values["ALLOWED_HOSTS"]),
        "REDRIVE_DATA_DIR": os.path.relpath(values["REDRIVE_DATA_DIR"], ROOT),
        "REDRIVE_WORKERS": "number of cores",
        "TRUST_PROXY": "off",  # has no setting of its own
    }
    assert {name: shown[name] for name in names} == {name: settings_table()[name] for name in names}


def documented_keys(table: str) -> dict[str, str]:
    """Key -> what the help says of it, of a table of the configuration file."""
    page = (ROOT / "templates/help/commands.html").read_text("utf-8")
    (part,) = re.findall(rf"<code>\[\[{table}\]\]</code></h3>(.*?)</dl>", page, re.DOTALL)
    rows = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", part)
    return {key: meaning for keys, meaning in rows for key in re.findall(r"<code>(\w+)</code>", keys)}


@pytest.mark.parametrize("table", TABLES)
def test_every_key_is_explained_and_marked_where_it_does_nothing_yet(table: str) -> None:
    keys = documented_keys(table)
    assert sorted(keys) == sorted(TABLES[table].keys)
    marked = {key for key, meaning in keys.items() if "not yet enforced" in meaning}
    assert marked == set(NOT_YET_ENFORCED.get(table, ()))


@DOCS
def test_every_address_exists(text: str) -> None:
    addresses = set(re.findall(r"(?:`|<code>)(/[a-z/-]+/)(?:`|</code>)", text))
    assert "/dead-letters/" in addresses
    for address in addresses:
        try:
            resolve(address)
        except Resolver404:
            pytest.fail(f"{address} does not exist")


@pytest.mark.django_db
def test_the_configuration_example_loads() -> None:
    (example,) = blocks("toml")
    report = load(example)
    assert [change.outcome for change in report.changes] == ["created"] * 3
    assert report.notes == []
    assert Kind.objects.get(pk="ticket.sort").max_attempts == 5


def test_the_python_examples_are_python() -> None:
    trees = [ast.parse(block) for block in blocks("python")]
    assert [ast.unparse(tree.body[0]) for tree in trees] == [
        "from tasks import submit",
        "from tasks import handler",
        "from tasks import done, not_done, reconcile",
    ]


def test_the_changelog_has_a_place_for_what_comes() -> None:
    assert "\n## [Unreleased]\n" in CHANGELOG
