"""Lines cut wherever the reads fall, and portions that end where the pipe pauses."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.submission import lines
from tasks.submission.lines import Line, read_lines


def read_file(path: Path) -> list[list[Line]]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return list(read_lines(descriptor))
    finally:
        os.close(descriptor)


@given(st.lists(st.binary(max_size=9).map(lambda data: data.replace(b"\n", b"")), max_size=30), st.integers(1, 7))
def test_any_lines_in_reads_of_any_size(given_lines: list[bytes], size: int) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"".join(line + b"\n" for line in given_lines))
    os.close(writer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "READ_BYTES", size)
        portions = list(read_lines(reader))
    os.close(reader)
    assert [line for portion in portions for line in portion] == [
        Line(number, data) for number, data in enumerate(given_lines, 1)
    ]


def test_the_last_line_may_lack_its_end(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"1\n2")
    assert read_file(tmp_path / "f") == [[Line(1, b"1"), Line(2, b"2")]]


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    assert read_file(tmp_path / "f") == []


def test_a_large_file_comes_in_portions(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 99 * 1024 + b"\n" + (b"y" * 1023 + b"\n") * 2_000)
    portions = read_file(tmp_path / "f")
    assert sum(len(portion) for portion in portions) == 2_001
    assert len(portions) == 9
    assert max(len(portion) for portion in portions) <= 257


def test_a_line_that_is_too_long_keeps_its_number_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 10)
    (tmp_path / "f").write_bytes(b"0123456789\n0123456789a\nshort")
    (portion,) = read_file(tmp_path / "f")
    assert portion == [Line(1, b"0123456789"), Line(2, None), Line(3, b"short")]


def test_a_pipe_that_pauses_hands_on_what_it_has() -> None:
    reader, writer = os.pipe()
    seen = threading.Event()

    def write() -> None:
        os.write(writer, b"1\n2")
        assert seen.wait(10)
        os.write(writer, b"2\n")
        os.close(writer)

    thread = threading.Thread(target=write)
    thread.start()
    portions = read_lines(reader)
    assert next(portions) == [Line(1, b"1")]
    seen.set()
    assert next(portions) == [Line(2, b"22")]
    assert next(portions, None) is None
    thread.join()
    os.close(reader)
