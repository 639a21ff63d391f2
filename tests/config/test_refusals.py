"""What is refused at the door: with which status and which sentence, and that nothing of it reaches a view."""

from __future__ import annotations

import pytest
from django.db import DataError, connection
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.test import Client, RequestFactory
from pytest_django.fixtures import Settings

from config import refusals
from config.middleware import ReadableMiddleware
from tasks.models import Kind, OperatorAction
from tests.factories import PASSWORD, make_kind, make_task, make_user

pytestmark = pytest.mark.django_db

BOUNDARY = "multipart/form-data; boundary=b"
PART = b'--b\r\nContent-Disposition: form-data; name="reason"'


@pytest.fixture
def ana() -> Client:
    """An operator's client that shows failures as pages."""
    make_kind()
    client = Client(raise_request_exception=False)
    client.force_login(make_user())
    return client


@pytest.mark.parametrize(
    ("path", "status"),
    [("/kinds/%00/pause/", 404), ("/dead-letters/?q=%00", 400), ("/tasks/?%00=1", 400), ("/help/a%00b/", 404)],
)
def test_a_nul_in_the_address(path: str, status: int, ana: Client) -> None:
    for method in (ana.get, ana.post, ana.head):
        assert method(path).status_code == status
    said = ana.get(path).content.decode()
    assert ("The address or the form holds something that cannot be read." if status == 400 else "Nothing is") in said


@pytest.mark.parametrize("reason", ["\x00", "wrong\x00language"])
def test_a_nul_in_a_reason_changes_nothing(reason: str, ana: Client) -> None:
    response = ana.post("/kinds/ticket.triage/pause/", {"reason": reason})
    assert response.status_code == 400
    assert "Nothing was changed." in response.content.decode()
    assert Kind.objects.get().paused_at is None
    assert not OperatorAction.objects.exists()


def test_htmx_gets_the_sentence_as_a_message(ana: Client) -> None:
    response = ana.post("/kinds/ticket.triage/pause/", {"reason": "\x00"}, headers={"HX-Request": "true"})
    assert response.status_code == 400
    assert response.content.decode().startswith('<hx-partial hx-target="#toasts"')
    assert "cannot be read" in response.content.decode()


@pytest.mark.parametrize("charset", ["utf-7", "utf-16", "hex", "rot13", "idna", "latin-1", "no-such", '"utf-7"'])
@pytest.mark.parametrize("sort", ["multipart/form-data; boundary=b", "application/x-www-form-urlencoded"])
def test_another_charset_is_refused(sort: str, charset: str, ana: Client) -> None:
    body = b'--b\r\nContent-Disposition: form-data; name="reason"\r\n\r\n+2AA-\r\n--b--\r\n'
    response = ana.generic("POST", "/kinds/ticket.triage/pause/", body, content_type=f"{sort}; charset={charset}")
    assert response.status_code == 400
    assert "not sent as UTF-8" in response.content.decode()
    assert ana.get("/tasks/", CONTENT_TYPE=f"{sort}; charset={charset}").status_code == 400


@pytest.mark.parametrize("charset", ["utf-8", "UTF-8", "utf8", '"utf-8"'])
def test_utf_8_by_any_of_its_names_is_taken(charset: str, ana: Client) -> None:
    sort = f"application/x-www-form-urlencoded; charset={charset}"
    assert ana.generic("POST", "/kinds/ticket.triage/pause/", b"reason=x", content_type=sort).status_code == 303
    assert Kind.objects.get().pause_reason == "x"


@pytest.mark.parametrize(
    ("sort", "body"),
    [
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=", b"x"),
        ("multipart/form-data; boundary=\xe9", b"x"),
        (BOUNDARY, b"--b\r\nContent-Disposition: form-data; name*=bogus''x\r\n\r\ny\r\n--b--\r\n"),
        (BOUNDARY, b"--b\r\nContent-Disposition: form-data; name*=utf-8''%00\r\n\r\ny\r\n--b--\r\n"),
        (BOUNDARY, PART + b"\r\n\r\n\x00\r\n--b--\r\n"),
        (BOUNDARY, PART + b"\r\nContent-Transfer-Encoding: base64\r\n\r\n!\r\n--b--"),
        (BOUNDARY, b"--b\r\n" * 50),
        ("application/json", b'{"reason": "x"}'),
        ("text/plain", b"reason=x"),
        ("", b"reason=x"),
        (";;;", b"reason=x"),
    ],
)
def test_a_body_that_is_no_form_pauses_nothing(sort: str, body: bytes, ana: Client) -> None:
    response = ana.generic("POST", "/kinds/ticket.triage/pause/", body, content_type=sort)
    assert response.status_code in (303, 400)
    assert Kind.objects.get().paused_at is None


def test_a_body_beyond_the_limit_is_413(ana: Client, settings: Settings) -> None:
    response = ana.post("/kinds/ticket.triage/pause/", {"reason": "x" * settings.DATA_UPLOAD_MAX_MEMORY_SIZE})
    assert response.status_code == 413
    assert "larger than the 4 MB" in response.content.decode()


def test_more_fields_than_any_page_sends_are_told(ana: Client, settings: Settings) -> None:
    response = ana.post("/tasks/cancel/", {"id": ["x"] * (settings.DATA_UPLOAD_MAX_NUMBER_FIELDS + 1)})
    assert response.status_code == 400
    assert "tick fewer rows at once" in response.content.decode()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/tasks/cancel/", "At most 200 tasks at once; these are 1,200."),
        ("/dead-letters/discard/", "At most 1000 letters at once; these are 1200."),
    ],
)
def test_a_page_s_own_limit_comes_first(path: str, said: str, ana: Client) -> None:
    """Nothing is done to some of them only."""
    ids = [f"00000000-0000-0000-0000-{n:012d}" for n in range(1200)]
    task = make_task()
    response = ana.post(path, {"id": [*ids[:-1], str(task.pk)], "reason": "x"}, headers={"HX-Request": "true"})
    assert response.status_code == 422
    assert said in response.content.decode()
    task.refresh_from_db()
    assert task.status == "ready"


# --- cookies ---------------------------------------------------------------------------------------------------------
COOKIES = [
    r'"\000"',
    r'"a\000bcdefghijkl"',
    r'"\355\240\200abcdefgh"',
    r'"\377\376"',
    "x" * 8_192,
    '"',
    "\\",
    "'; --",
    "",
]


@pytest.mark.parametrize("name", ["sessionid", "csrftoken", "messages", "django_language", "\x01odd"])
@pytest.mark.parametrize("value", COOKIES, ids=lambda value: ascii(value[:20]))
def test_a_broken_cookie_counts_as_not_sent(name: str, value: str) -> None:
    """A page for everybody, the way to the sign-in for the rest; and one can sign in with it."""
    client = Client(raise_request_exception=False)
    headers = {"cookie": f"{name}={value}"}
    assert client.get("/login/", headers=headers).status_code == 200
    assert client.get("/tasks/", headers=headers).headers["Location"].startswith("/login/")
    assert client.head("/tasks/", headers=headers).status_code == 302


@pytest.mark.parametrize("value", COOKIES, ids=lambda value: ascii(value[:20]))
def test_with_a_broken_session_one_can_sign_in(value: str) -> None:
    make_user()
    client = Client()
    response = client.post(
        "/login/", {"username": "ana", "password": PASSWORD}, headers={"cookie": f"sessionid={value}"}
    )
    assert response.status_code == 302
    assert client.get("/tasks/").status_code == 200


# --- headers ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("url", ["http://[", "\x00", "http://testserver:port/", "%"])
@pytest.mark.parametrize("coded", ["true", "false"])
def test_a_fragment_s_page_that_is_no_address_leads_to_the_start(url: str, coded: str) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": url, "HX-Current-URL-URI-AutoEncoded": coded}
    response = Client(raise_request_exception=False).get("/tasks/rows/", headers=headers)
    assert response.status_code == 200
    assert response.headers["HX-Redirect"] == "/login/?next=%2F"


@pytest.mark.parametrize("host", ["evil.example", "a b", "", "[", "127.0.0.1:x"])
def test_another_host_is_told_what_to_do(host: str, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["console.example"]
    response = Client(raise_request_exception=False).get("/login/", headers={"host": host})
    assert response.status_code == 400
    assert "ALLOWED_HOSTS" in response.content.decode()
    assert "evil.example" not in response.content.decode()


# --- what the database refuses ---------------------------------------------------------------------------------------
def test_a_value_out_of_range_is_refused(ana: Client) -> None:
    task = make_task()
    assert ana.get(f"/tasks/{task.pk}/attempts/99999999999999999999999/").status_code in (400, 404)


# --- the pages -------------------------------------------------------------------------------------------------------
def failing(_request: HttpRequest) -> HttpResponse:
    """A view that fails with a secret in its hands."""
    secret = "hunter2"
    raise RuntimeError(secret)


@pytest.mark.parametrize("name", ["400.html", "403.html", "403_csrf.html", "404.html", "500.html"])
def test_error_pages_need_no_database(name: str, rf: RequestFactory) -> None:
    with connection.execute_wrapper(_refuse):
        assert "<h1>" in render_to_string(name, {"sentence": "s"}, request=rf.get("/"))


def _refuse(*_args: object) -> None:
    raise AssertionError("asked the database")


def test_a_failure_says_nothing_of_itself(rf: RequestFactory) -> None:
    try:
        failing(rf.get("/"))
    except RuntimeError:
        response = refusals.server_error(rf.get("/"))
    assert response.status_code == 500
    assert "hunter2" not in response.content.decode() and "Traceback" not in response.content.decode()


def test_the_failure_page_stands_without_static_files(rf: RequestFactory, settings: Settings) -> None:
    """Where they were never collected every page fails, and this one must not."""
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
    }
    response = refusals.server_error(rf.get("/"))
    assert (response.status_code, response.content.decode()) == (500, refusals.BROKEN)


@pytest.mark.parametrize(
    ("exception", "status"), [(DataError("bad"), 400), (OverflowError("far"), 400), (RuntimeError("ours"), None)]
)
def test_only_what_came_with_the_request_is_refused(
    exception: Exception, status: int | None, rf: RequestFactory
) -> None:
    middleware = ReadableMiddleware(lambda _request: HttpResponse())
    response = middleware.process_exception(rf.get("/"), exception)
    assert (response.status_code if response else None) == status
