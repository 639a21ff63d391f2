"""Reading a stored traceback."""

from __future__ import annotations

from deadletters.frames import Frame, application_frames, frames

TRACEBACK = """Traceback (most recent call last):
  File "/srv/redrive/tasks/engine/runner.py", line 88, in run
    return await handler(payload)
  File "/srv/app/shop/handlers.py", line 41, in triage
    answer = await ask(payload)
             ^^^^^^^^^^^^^^^^^^
  File "/srv/app/shop/asking.py", line 7, in ask
    return await client.post()
  File "/usr/lib/python3.11/asyncio/tasks.py", line 277, in __step
    result = coro.send(None)
  File "/srv/venv/lib/python3.11/site-packages/openai/_client.py", line 902, in post
    raise error
openai.RateLimitError: Error code: 429"""


def test_application_frames_come_first_and_alone_the_most_recent_on_top() -> None:
    assert application_frames(TRACEBACK) == [
        Frame("/srv/app/shop/asking.py", 7, "ask", "return await client.post()"),
        Frame("/srv/app/shop/handlers.py", 41, "triage", "answer = await ask(payload)"),
    ]


def test_a_place_is_short_enough_to_read() -> None:
    assert application_frames(TRACEBACK)[0].place == "app/shop/asking.py:7"
    assert Frame(r"C:\srv\app\shop\asking.py", 7, "", "").place == "app/shop/asking.py:7"


def test_all_frames_are_found_in_order() -> None:
    assert [frame.line for frame in frames(TRACEBACK)] == [88, 41, 7, 277, 902]


def test_a_frame_without_source_does_not_take_the_next_line_for_code() -> None:
    text = '  File "/srv/a.py", line 1, in one\n  File "/srv/b.py", line 2, in two\nValueError: x'
    assert [(frame.function, frame.code) for frame in frames(text)] == [("one", ""), ("two", "")]


def test_a_recursion_is_shown_once() -> None:
    text = '  File "/srv/a.py", line 1, in again\n    again()\n' * 1_000
    assert len(application_frames(text)) == 1


def test_text_that_is_no_traceback_has_no_frames() -> None:
    assert frames("nothing of the sort\nFile missing") == []
    assert frames("") == []
