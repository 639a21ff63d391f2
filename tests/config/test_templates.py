"""What no template may contain: the content policy would block it, or it would open a door."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.template.loader import get_template

ROOT = Path(settings.BASE_DIR) / "templates"
TEMPLATES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.html"))

FORBIDDEN = {
    "a style attribute": re.compile(r"<[^>]*\sstyle\s*=", re.I),
    "an inline style": re.compile(r"<style[\s>]", re.I),
    "an inline script": re.compile(r"<script(?![^>]*\ssrc=)[^>]*>", re.I),
    "an event attribute": re.compile(r"<[^>]*\son[a-z]+\s*=", re.I),
    "hx-on": re.compile(r"hx-on", re.I),
    "evaluated JavaScript": re.compile(r"\b(?:js|javascript):", re.I),
    "a trigger filter": re.compile(r"hx-trigger\s*=\s*[\"'][^\"']*\[", re.I),
    "the old hx-disable guard": re.compile(r"hx-disabled-elt|hx-ext\b|sse-swap"),
    "something from elsewhere": re.compile(r"(?:src|href)\s*=\s*[\"'](?:https?:)?//", re.I),
    "an unescaped value": re.compile(r"\|\s*safe\b|autoescape\s+off|mark_safe"),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_template_holds_nothing_that_the_policy_blocks(name: str) -> None:
    """Every template, ours and those to come."""
    text = (ROOT / name).read_text(encoding="utf-8")
    assert [what for what, pattern in FORBIDDEN.items() if pattern.search(text)] == []


@pytest.mark.parametrize("name", TEMPLATES)
def test_template_parses(name: str) -> None:
    """A typing error in a tag would be a 500 on the first visit."""
    assert get_template(name) is not None


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ('<p style="color:red">', "a style attribute"),
        ("<script>alert(1)</script>", "an inline script"),
        ('<a onclick="go()">', "an event attribute"),
        ('<a hx-on:click="go()">', "hx-on"),
        ("<a hx-vals='js:{a:1}'>", "evaluated JavaScript"),
        ('<a hx-trigger="click[ctrlKey]">', "a trigger filter"),
        ('<img src="https://example.com/x.png">', "something from elsewhere"),
        ("{{ value|safe }}", "an unescaped value"),
    ],
)
def test_the_scan_sees(bad: str, what: str) -> None:
    """The scan itself finds what it is for."""
    assert FORBIDDEN[what].search(bad)


def test_posts_carry_a_token() -> None:
    """Each POST form has its CSRF token, so that it works without scripts."""
    missing = []
    for name in TEMPLATES:
        text = (ROOT / name).read_text(encoding="utf-8")
        forms = re.findall(r"<form\b[^>]*method=\"post\".*?</form>", text, re.S)
        missing += [name for form in forms if "{% csrf_token %}" not in form]
    assert missing == []
