"""How much of a response is taken in. A process runs many calls; one endpoint must not be able to fill its memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

import httpx2

from tasks.errors import AnswerMalformed

#: Bytes of an error's body; what follows is cut, as people read its beginning.
MAX_ERROR_BYTES = 1024 * 1024
#: Bytes of an answer on the wire. A token may come in an event of 300 bytes, so this is far above any real answer.
MAX_ANSWER_BYTES = 256 * 1024 * 1024
#: Asked of every provider: a compressed response may be a thousand times, with brotli a million times, what it seems.
PLAIN = {"Accept-Encoding": "identity"}


async def bound(response: httpx2.Response) -> None:
    """A response hook of the client: refuses what is compressed all the same, and bounds what is read."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in {"", "identity"} and not response.is_success:
        # The status says what failed; the body goes unread.
        del response.headers["content-encoding"]
        response.stream = _Bounded(response, is_answer=False, most=0)
    elif encoding not in {"", "identity"}:
        problem = f"it is compressed ({encoding[:40]}), though it was asked for plain"
        raise AnswerMalformed("the response cannot be read", problems=[problem])
    else:
        response.stream = _Bounded(response, is_answer=response.is_success)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, response: httpx2.Response, *, is_answer: bool, most: int = MAX_ERROR_BYTES) -> None:
        self._stream = cast(httpx2.AsyncByteStream, response.stream)
        self._is_answer = is_answer
        self._left = MAX_ANSWER_BYTES if is_answer else most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self._stream:
            self._left -= len(data)
            if self._left >= 0:
                yield data
                continue
            if self._is_answer:
                problem = f"it is larger than {MAX_ANSWER_BYTES} bytes"
                raise AnswerMalformed("the response cannot be read", problems=[problem])
            yield data[: self._left]
            return

    async def aclose(self) -> None:
        await self._stream.aclose()
