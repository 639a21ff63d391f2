"""What is kept between two runs of the demo."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tasks.demo.place import DemoPlace


def test_the_port_stays_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "a b" / "made"
    with DemoPlace(folder).listen() as listener:
        port = listener.getsockname()[1]
    assert DemoPlace(folder).read("port") == port
    with DemoPlace(folder).listen() as listener:
        assert listener.getsockname() == ("127.0.0.1", port)


def test_a_taken_port_is_given_up_for_a_free_one(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        place = DemoPlace(tmp_path)
        taken = other.getsockname()[1]
        place.keep(port=taken, next=7)
        with place.listen() as listener:
            port = listener.getsockname()[1]
    assert port != taken
    assert (place.read("port"), place.read("next")) == (port, 7)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"next": -1}', '{"next": "x"}', '{"next": true}', '{"port": 99999999}']
)
def test_what_cannot_be_read_starts_afresh(tmp_path: Path, content: str) -> None:
    (tmp_path / "demo.json").write_text(content)
    place = DemoPlace(tmp_path)
    assert place.read("next") == 0
    with place.listen() as listener:
        assert place.read("port") == listener.getsockname()[1]
