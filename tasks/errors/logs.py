"""Logs without secrets: a filter that masks the finished text of each record."""

from __future__ import annotations

import logging
import traceback

from tasks.errors.mask import mask_secrets
from tasks.errors.text import as_text, cut

#: Bytes of one message or traceback in a log; logging happens in the event loop and must not keep it.
LOG_BYTES = 64 * 1024


class MaskSecrets(logging.Filter):
    """Mask secrets in message, arguments, exception and stack of a record. Lets every record pass.

    The message is put together here, so that a secret split over message and arguments is seen whole; a record whose
    arguments do not fit its message is kept as it is, as logging itself reports that.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Always True; ``record`` is changed in place."""
        try:
            record.msg, record.args = _masked(record.getMessage()), None
        except (TypeError, ValueError, KeyError):
            record.msg = _masked(str(record.msg))
        if record.exc_info and record.exc_info[1] is not None and not record.exc_text:
            record.exc_text = "".join(traceback.format_exception(record.exc_info[1])).rstrip("\n")
        if record.exc_text:
            record.exc_text = _masked(record.exc_text)
        if record.stack_info:
            record.stack_info = _masked(record.stack_info)
        return True


def _masked(text: str) -> str:
    return cut(as_text(text), LOG_BYTES, tail=LOG_BYTES // 2, clean=mask_secrets)
