"""Django's template language as prompts have it: strict about names, without loaders, and bounded.

One line of a template can ask for years of work or for all memory. So its length is bounded, how deep its tags stand in
each other, the steps it takes (see ``tasks.llm.meter``), and what it and any text in it comes to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sized
from functools import lru_cache, wraps
from typing import Any

from django.template import (
    Context,
    Engine,
    Library,
    Template,
    TemplateSyntaxError,
    VariableDoesNotExist,
    defaultfilters,
    defaulttags,
)
from django.template.base import FilterExpression, Lexer, Node, NodeList, Parser, Token, TokenType
from django.template.defaulttags import ForNode, RegroupNode

from tasks.llm.meter import spend
from tasks.llm.payload import as_json

#: Tags that need a request, a loader or the process; all others of Django's own stay.
WITHHELD = {"autoescape", "csrf_token", "debug", "load", "lorem", "querystring", "url"}
#: Filters that take minutes for a text of a megabyte, as the time that they take grows with its square.
SLOW = {"truncatechars_html", "truncatewords_html"}
#: Filters that, as the first of an expression, say that the value may be absent.
OPTIONAL = ("default", "default_if_none")
#: Filters whose argument says how wide the text becomes, whatever the value.
WIDE = {"center", "floatformat", "ljust", "rjust", "stringformat"}
WIDEST = 10_000
#: Characters of a template, and of what it or any value in it comes to.
MAX_SOURCE, MAX_TEXT = 256 * 1024, 4 * 1024 * 1024
#: How often a line may open a tag that it does not close: Django looks for the end of each up to the end of the line.
MAX_UNCLOSED = 100
MARKS = (("{%", "%}"), ("{{", "}}"), ("{#", "#}"))
#: How deep tags may stand in each other, and how many words one may have: each level takes Python frames.
MAX_DEPTH, MAX_WORDS = 50, 100


class Missing(Exception):
    """A name that the payload does not have; the argument is the name."""


class TooLong(BaseException):
    """A text that is longer than a prompt may be. No Exception: ``{% if %}`` would take it for an answer of no."""


class PromptContext(Context):
    """What a template sees, and the characters that it may still come to."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values, autoescape=False, use_l10n=False, use_tz=False)
        self.room = MAX_TEXT


class _Strict(FilterExpression):
    """An expression whose variable must exist, unless it says what stands for it or its tag merely tests it."""

    __slots__ = ("required",)

    def __init__(self, token: str, parser: Parser) -> None:
        super().__init__(token, parser)
        #: Set for tags that go through the value though they ask Django to ignore that it is missing.
        self.required = False

    def resolve(self, context: Context, ignore_failures: bool = False) -> Any:
        value = self._resolved(context, ignore_failures)
        spend(1 + _size(value) * self.required, characters=_size(value))
        return value

    def _resolved(self, context: Context, ignore_failures: bool) -> Any:
        try:
            if self.is_var and not self._exists(context):
                if not (ignore_failures and not self.required) and not self._has_default():
                    raise Missing(self.var)
                # With None instead of Django's empty string, so that default_if_none serves too.
                return super().resolve(context, ignore_failures=True)
            return super().resolve(context, ignore_failures)
        except VariableDoesNotExist as error:
            # The argument of a filter.
            raise Missing(error.params[0]) from error

    def _exists(self, context: Context) -> bool:
        try:
            return self.var.resolve(context) is not _INVALID
        except VariableDoesNotExist:
            return False

    def _has_default(self) -> bool:
        return bool(self.filters) and self.filters[0][0] in [_FILTERS[name] for name in OPTIONAL]


class _Parser(Parser):
    depth = 0

    def compile_filter(self, token: str) -> FilterExpression:
        return _Strict(token, self)

    def parse(self, parse_until: Iterable[str] | None = None) -> NodeList:
        """The nodes up to an end tag; each level of tags in each other is a call of its own."""
        if self.depth > MAX_DEPTH:
            raise TemplateSyntaxError(f"tags are nested more than {MAX_DEPTH} deep")
        self.depth += 1
        nodes = super().parse(parse_until)
        self.depth -= 1
        return nodes

    def next_token(self) -> Token:
        token: Token = super().next_token()
        if token.token_type == TokenType.BLOCK and len(token.contents.split()) > MAX_WORDS:
            raise self.error(token, f"a tag has more than {MAX_WORDS} words")
        return token

    def extend_nodelist(self, nodelist: NodeList, node: Node, token: Token) -> None:
        super().extend_nodelist(nodelist, node, token)
        node.render_annotated = _counted(node)  # type: ignore[assignment]


def _counted(node: Node) -> Callable[[Context], str]:
    """The node's own rendering, counted. What nodes within it come to is counted there."""
    render = node.render_annotated
    holds_nodes = any(hasattr(node, attribute) for attribute in node.child_nodelists)

    def counted(context: Context) -> str:
        spend()
        text = str(render(context))
        spend(characters=len(text))
        if isinstance(context, PromptContext) and not holds_nodes:  # {% verbatim %} is rendered as it is compiled
            context.room -= len(text)
            if context.room < 0:
                raise TooLong
        return text

    return counted


class _PromptTemplate(Template):
    def compile_nodelist(self) -> NodeList:
        parser = _Parser(Lexer(self.source).tokenize(), {}, _LIBRARIES, self.origin)
        nodes = parser.parse()
        for expression in _used(nodes):
            if isinstance(expression, _Strict):
                expression.required = True
        return nodes


def _used(nodes: NodeList) -> Iterator[Any]:
    """The expressions whose absence Django's own tags would pass over in silence: a loop would run no times."""
    for node in (*nodes.get_nodes_by_type(ForNode), *nodes.get_nodes_by_type(RegroupNode)):
        yield node.sequence if isinstance(node, ForNode) else getattr(node, "target", None)


@lru_cache(maxsize=256)
def compiled(text: str) -> Template:
    """The template of a text, made once per text and process. Raises TemplateSyntaxError or RecursionError."""
    if len(text) > MAX_SOURCE:
        raise TemplateSyntaxError(f"it has {len(text)} characters; at most {MAX_SOURCE} are taken")
    _check_marks(text)
    return _PromptTemplate(text, engine=_ENGINE)


def _check_marks(text: str) -> None:
    for number, line in enumerate(text.split("\n"), 1):
        for mark, end in MARKS:
            if line.count(mark, line.rfind(end) + 1) > MAX_UNCLOSED:
                raise TemplateSyntaxError(f"line {number} has more than {MAX_UNCLOSED} {mark} without {end}")


def _library() -> Library:
    library = Library()
    library.tags = {name: tag for name, tag in defaulttags.register.tags.items() if name not in WITHHELD}
    library.filters = _FILTERS
    return library


def _bounded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that counts its work and makes no text that is longer than a prompt may be."""

    @wraps(function)
    def bounded(value: Any, *arguments: Any, **options: Any) -> Any:
        if name in WIDE and arguments:
            _check_width(name, str(arguments[0]))
        result = function(value, *arguments, **options)
        spend(characters=_size(value) + _size(result))
        if isinstance(result, str) and len(result) > MAX_TEXT:
            raise TooLong
        return result

    return bounded


def _check_width(name: str, argument: str) -> None:
    widths = re.findall(r"\d+", argument.replace("_", ""))
    if any(len(width) > len(str(WIDEST)) or int(width) > WIDEST for width in widths):
        raise ValueError(f"the filter {name} makes nothing wider than {WIDEST} characters")


def _size(value: Any) -> int:
    """How long a value is; numbers and the like are short."""
    return len(value) if isinstance(value, Sized) else 0


def _joined(values: Any, between: str) -> str:
    """Django's own leaves the array as it is when not all in it is text and nothing is escaped."""
    if len(between) * len(values) > MAX_TEXT:
        raise TooLong
    return between.join(value if isinstance(value, str) else as_json(value) for value in values)


class _Invalid(str):
    """What Django gives for a method that it cannot call, such as ``title.replace``; not equal to any payload's."""

    __slots__ = ()


_INVALID = _Invalid()
_FILTERS = {
    name: _bounded(name, function)
    for name, function in {**defaultfilters.register.filters, "json": as_json, "join": _joined}.items()
    if name not in SLOW
}
_ENGINE = Engine(autoescape=False, loaders=[], string_if_invalid=_INVALID)
_LIBRARIES = [_library()]
