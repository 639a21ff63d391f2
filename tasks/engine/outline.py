"""What can be told of a package of django-q2 that cannot be unpacked: its id, its name, its function's path."""

from __future__ import annotations

import io
import pickle
from typing import Any

from django_q import core_signing
from django_q.conf import Conf


class StandIn:
    """In place of any object: takes whatever unpickling does to it, and runs none of its code."""

    __qualname__ = "StandIn"

    def __new__(cls, *args: Any, **kwargs: Any) -> StandIn:
        """Whatever the arguments."""
        return object.__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __setstate__(self, state: Any) -> None: ...

    def __setitem__(self, key: Any, value: Any) -> None: ...

    def append(self, value: Any) -> None:
        """As lists are filled."""

    def extend(self, values: Any) -> None:
        """As lists are filled."""

    def add(self, value: Any) -> None:
        """As sets are filled."""


class _Names(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return type(name, (StandIn,), {"__module__": module, "__qualname__": name})


class _Outlines:
    """A serializer for django-q2's signing."""

    @staticmethod
    def loads(data: bytes) -> Any:
        return _Names(io.BytesIO(data)).load()


def outline(package: str) -> dict[str, Any]:
    """The call with stand-ins for all that is not plain data; empty where nothing can be told.

    Signed by us or not opened at all.
    """
    try:
        return dict(core_signing.loads(package, key=Conf.SECRET_KEY, salt=Conf.PREFIX, serializer=_Outlines))
    except Exception:  # a package may hold anything
        return {}
