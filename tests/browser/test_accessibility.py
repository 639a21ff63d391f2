"""Every page, light and dark, on three widths: readable, named, no wider than its screen."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page

from tests.browser.pages import Scheme, fill, show
from tests.deadletters import deaths

pytestmark = pytest.mark.django_db(transaction=True)

#: Text whose contrast with what stands behind it is below 4.5:1 (3:1 for large text). Blends translucent grounds.
UNREADABLE = """() => {
  const parse = (text) => {
    const inner = text.match(/[\\d.]+/g).map(Number);
    const scale = text.startsWith("color(") ? 255 : 1;
    return { rgb: inner.slice(0, 3).map((part) => part * scale), alpha: inner[3] ?? 1 };
  };
  const blend = (top, under) => top.rgb.map((part, at) => part * top.alpha + under[at] * (1 - top.alpha));
  const ground = (element) => {
    const chain = [];
    for (let up = element; up; up = up.parentElement) chain.push(parse(getComputedStyle(up).backgroundColor));
    return chain.reverse().reduce((under, layer) => blend(layer, under), [255, 255, 255]);
  };
  const luminance = (rgb) => rgb.map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const bad = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const element = walker.currentNode.parentElement;
    if (!text || !element.checkVisibility({ visibilityProperty: true })) continue;
    if (element.closest("script, template, option, .hidden-text, [aria-disabled], [disabled]")) continue;
    const style = getComputedStyle(element);
    const behind = ground(element);
    const ink = blend(parse(style.color), behind);
    const [bright, dark] = [luminance(ink), luminance(behind)].sort((a, b) => b - a);
    const size = parseFloat(style.fontSize);
    const needed = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    const ratio = (bright + 0.05) / (dark + 0.05);
    if (ratio < needed) bad.push(`${text.slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return bad;
}"""

#: Controls without a name, ids that stand twice, references that lead nowhere.
UNNAMED = """() => {
  const bad = [];
  for (const control of document.querySelectorAll("input:not([type=hidden]), select, textarea, button, a, summary")) {
    if (control.closest("[hidden]")) continue;
    const label = [...(control.labels ?? [])].map((one) => one.textContent).join(" ");
    const name = control.getAttribute("aria-label") || label || control.textContent;
    if (!name.trim()) bad.push(control.outerHTML.slice(0, 120));
  }
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) bad.push(`id ${id} stands twice`);
  for (const one of document.querySelectorAll("[aria-describedby], label[for]")) {
    const id = one.getAttribute("aria-describedby") ?? one.getAttribute("for");
    if (!document.getElementById(id)) bad.push(`nothing has the id ${id}`);
  }
  if (document.querySelectorAll("h1").length !== 1) bad.push("not one h1");
  if (!document.documentElement.lang || !document.title) bad.push("no language or title");
  return bad;
}"""


#: In the help: what is said of a term has room, what is to be copied is not cut off, and tables fit.
CRAMPED = """() => [
  ...[...document.querySelectorAll(".prose dl.facts > dd")].filter((one) => one.clientWidth < 200)
    .map((one) => `${one.clientWidth} px for: ${one.textContent.slice(0, 40)}`),
  ...[...document.querySelectorAll(".prose pre")].filter((one) => one.scrollHeight > one.clientHeight + 1)
    .map((one) => `cut off: ${one.textContent.slice(0, 40)}`),
  ...[...document.querySelectorAll(".prose .scroll")].filter((one) => one.scrollWidth > one.clientWidth + 1)
    .map((one) => `wider than its place: ${one.getAttribute("aria-label")}`),
]"""
TOO_WIDE = """() => document.documentElement.scrollWidth > innerWidth
  || [...document.querySelectorAll(".scroll:has(> table.rows)")].some((one) => one.scrollWidth > one.clientWidth + 1)"""
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
#: More screens that each width stands for: a small phone, tablets, laptops; the layout changes between them.
NEAR = {390: (360, 768, 992), 1024: (993, 1153, 1280), 1600: (1366, 1599, 1920)}


def faults_at(page: Page, width: int) -> list[str]:
    """What is wrong on the page that is open, on a screen of this width, light and dark, and on those like it."""
    faults = []
    for screen in (*NEAR[width], width):
        page.set_viewport_size({"width": screen, "height": 800})
        if page.evaluate(TOO_WIDE):
            faults.append(f"scrolls sideways at {screen}")
    faults += [f"{fault} at {width}" for fault in page.evaluate(CRAMPED)]
    for scheme in SCHEMES:
        show(page, width, scheme)
        faults += [f"{fault} at {width}, {scheme}" for fault in page.evaluate(UNREADABLE)]
    return faults


def test_every_page(open_page: Callable[..., Page], operator: User) -> None:
    """One pass over them all, each loaded once for all screens: loading is the slow part."""
    paths = fill(operator)
    page = open_page(as_="ana")
    found = {}
    for path in paths:
        page.goto(path)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = !one.matches('.ask'); })")
        faults = page.evaluate(UNNAMED) + [fault for width in NEAR for fault in faults_at(page, width)]
        if faults:
            found[path] = faults
    assert found == {}


def test_the_rail_names_its_pages_whole(open_page: Callable[..., Page], operator: User) -> None:
    """Also the one that is open, beside the largest count, at each width of the rail."""
    deaths.letter()
    page = open_page(as_="ana")
    page.goto("/dead-letters/")
    page.locator(".rail .count").evaluate("count => { count.textContent = '10,000+'; }")
    for width in (993, 1024, 1599, 1600):
        page.set_viewport_size({"width": width, "height": 800})
        cut = "names => names.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent)"
        assert page.locator(".rail .item .clip").evaluate_all(cut) == [], width


def test_a_thumb_finds_what_it_aims_at(open_page: Callable[..., Page], operator: User) -> None:
    """Boxes and tabs are large where the pointer is coarse, and no field is so small that a phone zooms into it."""
    deaths.letter()
    page = open_page(as_="ana", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page.goto("/dead-letters/")
    sizes = "all => Math.min(...all.map((one) => Math.min(one.offsetHeight, one.offsetWidth)))"
    assert page.locator("input.tick, input.tick-all").evaluate_all(sizes) >= 24
    fields = page.locator(".tabs a, .filters summary, .filters > input, .filters > select").filter(visible=True)
    assert fields.evaluate_all(sizes) >= 32
    text = "all => Math.min(...all.map((one) => parseFloat(getComputedStyle(one).fontSize)))"
    assert page.locator(".filters input:not([type=checkbox]), .filters select").evaluate_all(text) >= 16


def test_a_fingerprint_stands_on_the_line_of_its_word(open_page: Callable[..., Page], operator: User) -> None:
    """And that on the line of what stands before it."""
    letter = deaths.letter()
    page = open_page(as_="ana", viewport={"width": 1600, "height": 900})
    page.goto(f"/dead-letters/{letter.pk}/")
    tops = page.locator(".timeline .sub").first.evaluate("""sub => [...sub.children].map((one) => {
      const text = document.createRange();
      text.selectNodeContents(one.firstChild);
      return text.getBoundingClientRect().top;
    })""")
    assert max(tops) - min(tops) < 1


def test_the_checks_see(open_page: Callable[..., Page], operator: User) -> None:
    """Grey on white, a nameless button, an id that stands twice."""
    page = open_page(as_="ana")
    page.evaluate("""() => {
      const main = document.querySelector("main");
      main.insertAdjacentHTML("beforeend", '<p id="main">faint</p><button type="button"></button>');
      main.lastElementChild.previousElementSibling.style.color = "#bbb";
    }""")
    assert any(fault.startswith("faint: 1.") for fault in page.evaluate(UNREADABLE))
    faults = page.evaluate(UNNAMED)
    assert '<button type="button"></button>' in faults and "id main stands twice" in faults
