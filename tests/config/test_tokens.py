"""The palette: every text colour is readable on every ground it stands on, light and dark (WCAG 2.2 AA)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings

CSS = (Path(settings.BASE_DIR) / "static" / "css" / "tokens.css").read_text(encoding="utf-8")
LIGHT, SYSTEM_DARK, CHOSEN_DARK = re.findall(r"\{([^{}]*--paper:[^{}]*)\}", CSS)

TEXT_PAIRS = [
    *[(ink, ground) for ink in ("ink", "ink-2", "ink-3") for ground in ("paper", "surface", "sunken")],
    *[(tone, f"{tone}-soft") for tone in ("ok", "run", "wait", "warn", "bad", "odd")],
    *[(tone, "surface") for tone in ("ok", "bad", "warn", "accent")],
    ("accent", "accent-soft"),
    ("accent-ink", "accent"),
    ("ink", "accent-soft"),
    ("ink-3", "accent-soft"),
]
#: Edges of controls and the focus ring need 3:1.
EDGE_PAIRS = [("edge", "surface"), ("focus", "surface"), ("focus", "paper"), ("edge", "paper")]


def colours(block: str) -> dict[str, str]:
    """Token → six hex digits."""
    found = dict(re.findall(r"--([a-z0-9-]+):\s*#([0-9a-f]{3,6})\s*;", block))
    return {name: value if len(value) == 6 else "".join(c * 2 for c in value) for name, value in found.items()}


def luminance(value: str) -> float:
    """Relative luminance, WCAG 2."""
    parts = [int(value[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """From 1 to 21."""
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), TEXT_PAIRS)
def test_text_is_readable(theme: str, text: str, ground: str) -> None:
    """At least 4.5 to 1."""
    palette = colours(LIGHT if theme == "light" else CHOSEN_DARK)
    assert contrast(palette[text], palette[ground]) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("edge", "ground"), EDGE_PAIRS)
def test_controls_are_visible(theme: str, edge: str, ground: str) -> None:
    """At least 3 to 1."""
    palette = colours(LIGHT if theme == "light" else CHOSEN_DARK)
    assert contrast(palette[edge], palette[ground]) >= 3


def test_both_dark_palettes_are_the_same() -> None:
    """The system's wish and the operator's choice give one look."""
    assert colours(SYSTEM_DARK) == colours(CHOSEN_DARK)


def test_contrast_is_computed_rightly() -> None:
    """Black on white is 21 to 1."""
    assert round(contrast("000000", "ffffff"), 1) == 21.0
