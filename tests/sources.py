"""The files of the project, for the tests that look at them."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("config", "tasks", "deadletters")
#: What a checkout holds beside its files: environments, caches, data.
NOT_OURS = {"__pycache__", "vendor", "node_modules"}
BINARY = {".png", ".jpg", ".webp", ".ico", ".mo", ".woff2", ".gz", ".br", ".pyc"}


def files(*folders: str, suffix: str = "") -> Iterator[Path]:
    """The text files under the folders of the project, or under all of it, in order."""
    for folder in folders or (".",):
        for place, below, names in os.walk(ROOT / folder):
            below[:] = sorted(name for name in below if _is_ours(name))
            paths = (Path(place, name) for name in sorted(names) if name.endswith(suffix))
            yield from (path for path in paths if path.suffix not in BINARY)


def _is_ours(folder: str) -> bool:
    return folder == ".ci" or not (folder.startswith(".") or folder in NOT_OURS or folder.endswith(".egg-info"))


@cache
def modules() -> dict[str, ast.Module]:
    """The parsed modules of the product by their path from the root, without migrations."""
    found = {str(path.relative_to(ROOT)): path for path in files(*PACKAGES, suffix=".py")}
    return {name: ast.parse(path.read_text("utf-8")) for name, path in found.items() if "/migrations/" not in name}
