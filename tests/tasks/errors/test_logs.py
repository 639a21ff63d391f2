"""No secret reaches a log, wherever in the record it stands."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from tasks.errors.logs import MaskSecrets

SECRET = "sk-abcdefghijklmnop1234567890"


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(MaskSecrets())
    logger = logging.Logger("test")
    logger.addHandler(handler)
    yield logger, stream


def test_message_and_arguments(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, stream = log
    logger.warning("calling with password=%s and %s", "hunter2", {"api_key": SECRET})
    assert stream.getvalue() == "calling with password=[masked] and {'api_key': '[masked]'}\n"


def test_exception_and_stack(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, stream = log
    try:
        raise ValueError(f"refused {SECRET}")
    except ValueError:
        logger.exception("the call failed", stack_info=True)
    text = stream.getvalue()
    assert "ValueError: refused [masked]" in text and "Traceback" in text and SECRET not in text


def test_a_record_whose_arguments_do_not_fit_is_kept(log: tuple[logging.Logger, io.StringIO]) -> None:
    record = logging.LogRecord("test", logging.INFO, __file__, 1, f"%d of {SECRET}", ("x",), None)
    assert MaskSecrets().filter(record)
    assert record.msg == "%d of [masked]" and record.args == ("x",)


def test_a_message_of_megabytes_is_cut(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, stream = log
    logger.warning("first %s last", f"password='{SECRET}' " * 100_000)
    text = stream.getvalue()
    assert len(text) < 70_000 and text.startswith("first password='[masked]'") and text.endswith(" last\n")
    assert "[cut: " in text and SECRET not in text
