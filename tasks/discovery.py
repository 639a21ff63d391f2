"""Importing the ``handlers`` module of each app. One that fails is remembered: it must not take the console with it."""

from __future__ import annotations

import logging
import traceback
from dataclasses import dataclass
from importlib import import_module

from django.apps import apps
from django.utils.module_loading import module_has_submodule

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failed:
    """An app whose handlers cannot be imported; ``why`` says what was raised, and where."""

    app: str
    why: str


failed: list[Failed] = []


def discover_handlers() -> None:
    """Import the handlers of every installed app, once all apps are loaded.

    The web process goes on without those that fail, and says so in its log: people need it to see what waits. Commands,
    the workers' among them, are kept from starting by a system check, which reads ``failed``.
    """
    failed.clear()
    for config in apps.get_app_configs():
        if config.module is None or not module_has_submodule(config.module, "handlers"):
            continue
        try:
            import_module(f"{config.name}.handlers")
        except Exception as error:
            failed.append(Failed(config.name, f"{type(error).__name__}: {error}{_place(error, config.path)}"))
            logger.exception("The handlers of the app %r cannot be imported.", config.name)


def _place(error: Exception, folder: str) -> str:
    """The last line of the app's own that led to the error."""
    if isinstance(error, SyntaxError):
        return ""  # its text names the line
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(folder)]
    return f" ({lines[-1].filename}, line {lines[-1].lineno})" if lines else ""
