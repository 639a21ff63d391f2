"""The import contracts hold, and hold against every package: in a copy of the project with an intruder in each."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sources import PACKAGES, ROOT, modules

#: What only one package may import, and which; the demo's command is a module, so that it is no intruder.
PROTECTED = {"django_q": "tasks.engine", "openai": "tasks.llm", "tasks.demo": "tasks.demo"}
INTRUDER = "import django_q\nimport openai\nimport tasks.demo.trickle\n"


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts of the project in ``folder``."""
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run([program, "--no-cache", "--no-logo"], cwd=folder, capture_output=True, text=True, timeout=120)


def packages() -> list[str]:
    """The dotted names of all packages of the product."""
    return [name.removesuffix("/__init__.py").replace("/", ".") for name in modules() if name.endswith("__init__.py")]


def test_the_project_keeps_them() -> None:
    run = lint(ROOT)
    assert run.returncode == 0, run.stdout
    assert "0 broken" in run.stdout


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is said of a copy in which every package imports what is not for it."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(ROOT / "pyproject.toml", folder)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    for package in packages():
        (folder / package.replace(".", "/") / "intruder.py").write_text(INTRUDER)
    run = lint(folder)
    assert run.returncode == 1, run.stdout + run.stderr
    return run.stdout


@pytest.mark.parametrize("name", PROTECTED)
def test_every_other_package_is_kept_out(name: str, told: str) -> None:
    said = told.split(f"Illegal imports of protected package {name}:")[1].split("Illegal imports")[0]
    found = {match[1] for match in re.finditer(r"^- ([\w.]+)\.intruder -> ", said, re.MULTILINE)}
    mine = PROTECTED[name]
    others = {package for package in packages() if package != mine and not package.startswith(f"{mine}.")}
    assert len(others) > 15
    assert found == others
