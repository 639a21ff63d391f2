"""The project's own rules, as far as a program can check them and no linter does."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path
from statistics import median, quantiles
from sys import stdlib_module_names

import pytest

from tests.sources import PACKAGES, ROOT, files, modules

Function = ast.FunctionDef | ast.AsyncFunctionDef
MAX_LINES = 320
#: Tables of values, which are as long as what they list.
TABLES = {"tasks/errors/codes.py"}
MIGRATIONS = [*files("tasks/migrations", "deadletters/migrations", suffix=".py")]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def imported(tree: ast.Module) -> Iterator[str]:
    """The full names of the modules that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def test_modules_are_small() -> None:
    lengths = {name: len((ROOT / name).read_text("utf-8").splitlines()) for name in modules()}
    assert {name: length for name, length in lengths.items() if length > MAX_LINES and name not in TABLES} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_functions_are_small(package: str) -> None:
    lengths = [
        (node.end_lineno or node.lineno) - node.lineno + 1
        for name, tree in modules().items()
        if name.startswith(f"{package}/")
        for node in functions(tree)
    ]
    assert median(lengths) <= 8
    assert quantiles(lengths, n=10)[-1] < 40


@pytest.mark.parametrize("path", MIGRATIONS, ids=lambda path: path.stem)
def test_indexes_of_tables_that_are_in_use_are_built_beside_the_work(path: Path) -> None:
    """Of a migration that makes the table itself, and so finds it empty, no such thing is asked."""
    calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
    named = [(ast.unparse(call.func).removeprefix("migrations."), told(call)) for call in calls]
    new = {values.get("name", "").lower() for operation, values in named if operation == "CreateModel"}
    locking = [values for operation, values in named if operation in ("AddIndex", "RemoveIndex")]
    assert [values for values in locking if values.get("model_name", "").lower() not in new] == []


def told(call: ast.Call) -> dict[str, str]:
    """The texts among a call's named arguments."""
    return {
        keyword.arg: keyword.value.value
        for keyword in call.keywords
        if keyword.arg and isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str)
    }


def test_what_is_public_says_what_it_is() -> None:
    silent = [
        f"{name}:{getattr(node, 'lineno', 1)}"
        for name, tree in modules().items()
        for node in (tree, *tree.body)
        if isinstance(node, Function | ast.ClassDef | ast.Module)
        and not getattr(node, "name", "").startswith("_")
        and not ast.get_docstring(node)
        and (not isinstance(node, ast.Module) or node.body)
    ]
    assert silent == []


def read_by_somebody(tree: ast.Module) -> Iterator[str]:
    """Names that only their readers give a use: constants, functions, and what classes of our own making have."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name) and target.id.isupper())
        elif isinstance(node, Function) and not node.decorator_list:
            yield node.name
        elif isinstance(node, ast.ClassDef) and not node.bases:
            yield from (member.name for member in node.body if isinstance(member, Function) and member.name[:2] != "__")
            fields = (member.target for member in node.body if isinstance(member, ast.AnnAssign))
            yield from (field.id for field in fields if isinstance(field, ast.Name))


def test_nothing_is_there_for_nobody() -> None:
    places = chain(files(*PACKAGES, "tests", "templates", "static/js"), [ROOT / "manage.py"])
    text = " ".join(path.read_text("utf-8") for path in places if "/migrations/" not in str(path))
    uses = Counter(re.findall(r"[A-Za-z_]\w*", text))
    unread = {
        (name, found)
        for name, tree in modules().items()
        if not name.startswith("config/settings")  # Django and its apps read those
        for found in read_by_somebody(tree)
        if uses[found] == 1
    }
    assert unread == set()


def test_no_module_is_a_drawer_for_the_rest() -> None:
    vague = {"services", "utils", "helpers", "common", "misc"}
    assert [name for name in modules() if vague.intersection(re.split(r"[/.]", name))] == []


WRITES_STATUS = re.compile(r"UPDATE\s+\"?tasks_task\"?\b.*?\bSET\b(?:(?!\bWHERE\b).)*?\bstatus\s*=", re.DOTALL)


def writes_of_status(tree: ast.Module) -> Iterator[ast.AST]:
    """``.update(status=…)``, ``task.status = …`` and SQL that sets it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "update":
            yield from (node for keyword in node.keywords if keyword.arg == "status")
        elif isinstance(node, ast.Assign):
            yield from (
                target
                for target in node.targets
                if isinstance(target, ast.Attribute) and target.attr == "status" and ast.unparse(target.value) != "self"
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and WRITES_STATUS.search(node.value):
            yield node


def test_only_the_lifecycle_writes_status() -> None:
    writers = {name for name, tree in modules().items() if any(True for _ in writes_of_status(tree))}
    assert {name for name in writers if not name.startswith("tasks/lifecycle/")} == set()
    assert writers, "the rule finds the lifecycle's own statements"


@pytest.mark.parametrize("package", ["tasks/errors/", "tasks/llm/", "tasks/retry.py"])
def test_no_database_where_decisions_are_pure(package: str) -> None:
    assert {
        (name, module)
        for name, tree in modules().items()
        if name.startswith(package)
        for module in imported(tree)
        if module.startswith(("django.db", "tasks.models"))
    } == set()


def test_every_dependency_is_pinned() -> None:
    wanted = [*PROJECT["dependencies"], *chain(*PROJECT["optional-dependencies"].values())]
    assert [line for line in wanted if not re.fullmatch(r"[\w.-]+(\[[\w,-]+\])?==[\w.]+", line)] == []


def test_what_is_imported_is_declared() -> None:
    declared = {re.split(r"[=\[]", line)[0].lower() for line in PROJECT["dependencies"]}
    dists = packages_distributions()
    tops = {module.partition(".")[0] for tree in modules().values() for module in imported(tree)}
    outer = tops - set(stdlib_module_names) - set(PACKAGES)
    assert {top for top in outer if not declared & {_plain(name) for name in dists.get(top, [top])}} == set()


def _plain(name: str) -> str:
    """A distribution's name as package indexes compare them."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_no_address_of_a_machine_or_registry() -> None:
    # put together here, so that this file does not name them itself
    places = [f"/work/{name}" for name in ("main", "shared")]
    hosts = ["py" + "pi.org", "python" + "hosted.org", "registry" + ".npmjs.org", "deb.debian" + ".org"]
    found = [
        (str(path.relative_to(ROOT)), word)
        for path in files()
        for word in (*places, *hosts)
        if word in path.read_text("utf-8") and path.suffix not in {".jsonl", ".json"}
    ]
    assert found == []


def test_tests_mirror_the_tree() -> None:
    folders = {path.parent for path in files("tests", suffix=".py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_tests_wait_for_conditions_not_for_luck() -> None:
    """A test that sleeps says why on that line: the time itself is what it tests, or nothing must happen in it."""
    sleepers = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in files("tests", suffix=".py")
        if "sleep(" in (text := path.read_text("utf-8"))
        for function in functions(ast.parse(text))
        if function.name.startswith("test_")
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "time.sleep"
        if "  # " not in text.splitlines()[node.lineno - 1]
    ]
    assert sleepers == []


def test_query_counts_are_checked() -> None:
    """``assertNumQueries`` and pytest-django's fixtures check nothing unless they are entered."""
    loose = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in files("tests", suffix=".py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Expr) and "_num_queries(" in ast.unparse(node)[:60].lower()
    ]
    assert loose == []
