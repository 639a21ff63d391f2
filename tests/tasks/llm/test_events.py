"""Server-sent events, however the network splits them."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.llm.events import Event, EventReader, NotJson

TEXT = (
    b"\xef\xbb\xbf: comment\n\n"
    b'data: {"a": "\xe4\xbd\xa0\xe5\xa5\xbd\xe2\x80\xa8\xf0\x9f\x98\x80"}\r\n\r\n'
    b"retry: 10\rid: 7\rdata:{}\r\r"
    b'event: error\ndata: {"b":\ndata: 2}\n\n'
    b'data: {"c": 3}\ndata: {"d": 4}\n\n'
    b"data: [DONE]\n\n"
)
EVENTS = [
    Event("", {"a": "你好\u2028😀"}),
    Event("", {}),
    Event("error", {"b": 2}),
    Event("", {"c": 3}),
    Event("", {"d": 4}),
]


def read(*pieces: bytes) -> tuple[list[Event], EventReader]:
    reader = EventReader()
    events = [event for piece in pieces for event in reader.feed(piece)]
    return [*events, *reader.close()], reader


def test_all_kinds_of_lines_in_one_piece() -> None:
    events, reader = read(TEXT)

    assert events == EVENTS
    assert reader.done
    assert reader.count == 5


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_pieces_of_one_size(size: int) -> None:
    events, reader = read(*(TEXT[start : start + size] for start in range(0, len(TEXT), size)))

    assert (events, reader.done) == (EVENTS, True)


@given(st.sets(st.integers(0, len(TEXT))))
def test_any_split(cuts: set[int]) -> None:
    edges = [0, *sorted(cuts), len(TEXT)]

    events, reader = read(*(TEXT[start:end] for start, end in pairwise(edges)))

    assert (events, reader.done) == (EVENTS, True)


def test_an_event_is_given_before_its_blank_line() -> None:
    reader = EventReader()

    assert list(reader.feed(b'data: {"a": 1}\n')) == [Event("", {"a": 1})]
    assert list(reader.feed(b"\n")) == []


def test_a_crlf_cut_in_two_is_one_line_end() -> None:
    body = b'data: {"a":\r\ndata: 1}\r\n\r\n'

    assert read(*(body[at : at + 1] for at in range(len(body))))[0] == [Event("", {"a": 1})]


def test_the_name_of_an_event_is_its_own() -> None:
    assert read(b"event: error\ndata: 1\ndata: 2\n\nevent: lost\n\ndata: 3\n\n")[0] == [
        Event("error", 1),
        Event("", 2),
        Event("", 3),
    ]


def test_a_last_line_without_its_end_counts_if_it_is_complete() -> None:
    assert read(b'data: {"a": 1}')[0] == [Event("", {"a": 1})]
    assert read(b'data: {"a": ')[0] == []
    assert read(b'data: {"a":\ndata: 1}')[0] == [Event("", {"a": 1})]


def test_a_complete_event_that_is_no_json() -> None:
    reader = EventReader()

    with pytest.raises(NotJson, match="upstream unavailable"):
        list(reader.feed(b"data: upstream unavailable\n\n"))


def test_events_before_a_broken_one_are_given() -> None:
    reader, seen = EventReader(), []

    with pytest.raises(NotJson):
        seen.extend(reader.feed(b"data: 1\n\n")) or seen.extend(reader.feed(b"data: \xff\n\n"))

    assert seen == [Event("", 1)]


def test_a_megabyte_byte_by_byte_takes_linear_time() -> None:
    line = b"data: " + json.dumps("x" * 300_000).encode()

    events, _ = read(*(line[at : at + 1] for at in range(len(line))), b"\n")

    assert len(events[0].data) == 300_000


def test_a_megabyte_over_many_data_lines() -> None:
    body = json.dumps([0] * 100_000, indent=0).encode()

    events, _ = read(b"".join(b"data: " + line + b"\n" for line in body.split(b"\n")) + b"\n")

    assert len(events[0].data) == 100_000


def test_what_is_held_back_is_known() -> None:
    reader = EventReader()

    list(reader.feed(b"data: 1\n\ndata: 123"))

    assert reader.held == len(b"data: 123")
