"""Which text a request may hold: what a text column can, sent as UTF-8."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable

from django.http import QueryDict
from django.utils.http import parse_header_parameters

#: What PostgreSQL stores in no text: NUL, and halves of surrogate pairs.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def is_storable(text: str) -> bool:
    """Whether a text column can hold it, and a search ask for it."""
    return UNSTORABLE.search(text) is None


def all_storable(params: QueryDict) -> bool:
    """Whether every name and value of a form or query string is storable."""
    return all(map(is_storable, _texts(params)))


def _texts(params: QueryDict) -> Iterable[str]:
    for name, values in params.lists():
        yield name
        yield from map(str, values)


def is_utf_8(content_type: str) -> bool:
    """Whether a content type names UTF-8 or no charset; False for one that cannot be read."""
    try:
        _type, parameters = parse_header_parameters(content_type)
        return codecs.lookup(parameters.get("charset") or "utf-8").name in ("utf-8", "ascii")
    except (LookupError, ValueError):
        return False
