"""Secrets go, what people need to look further stays. All keys and names here are made up."""

from __future__ import annotations

import pytest

from tasks.errors import mask, mask_secrets
from tasks.errors.mask import is_secret_name, mask_headers, mask_value
from tasks.errors.names import MASKED
from tasks.errors.pairs import MOST, REST
from tasks.errors.text import cut

HEX = "3f2a9c4be8d71f605a9e2d4c8b7a6f51"
SECRETS = [
    ("Incorrect API key provided: sk-abcdEFGH1234567890abcdEFGH1234. You can find", "sk-abcdEFGH1234", "You can find"),
    ("x-api-key: sk-ant-api03-AbC_dEf-1234567890abcdefghij", "AbC_dEf", "x-api-key"),
    ("aws_secret_access_key=wJalrXUtnFEMI/K7MDENG/bPxRfiCY region=eu-central-1", "wJalrXUtnFEMI", "eu-central-1"),
    ("Credential=AKIAIOSFODNN7EXAMPLE/2026, Signature=fe5f80f77d5fa3beca038a248ff", "fe5f80f77d5fa3", "Credential="),
    ("https://b.example/x?X-Amz-Signature=deadbeef00112233&X-Amz-Expires=60", "deadbeef0011", "X-Amz-Expires=60"),
    (
        "{'Authorization': 'Bearer 8Jx2kfTqL0aPzVnW5sYd', 'User-Agent': 'x/1.0'}",
        "8Jx2kfTqL0aPzV",
        "'User-Agent': 'x/1.0'",
    ),
    ("[(b'authorization', b'Bearer abcdefghijklmnopqr'), (b'host', b'a.example')]", "abcdefghijklmnopqr", "a.example"),
    ("sent Authorization: Basic c3ZjX2xsbTpwYTU1LVcwcmQh and got 401", "c3ZjX2xsbTpw", "Authorization"),
    ("cookie: session=38afes7a8; csrf=u32t4o3tb\nhost: a.example", "38afes7a8", "host: a.example"),
    ("redis://:s3cr3tpw@cache.internal:6379/0", "s3cr3tpw", "cache.internal:6379/0"),
    ("postgresql://app:p@ss/w0rd@db.example:5432/jobs", "p@ss/w0rd", "db.example:5432/jobs"),
    ("failed to resolve host 'w0rd@db.example'", "w0rd", "db.example"),
    ("host=db user=u password='Salz & Pfeffer' dbname=jobs", "Salz & Pfeffer", "dbname=jobs"),
    ("password: Salz&Pfeffer", "Pfeffer", "password"),
    ("DSN Server=tcp:x;User ID=u;Password=Abc!23;Encrypt=True", "Abc!23", "Encrypt=True"),
    ("https://ghp_abcdefghijklmnopqrstuvwxyz0123456789@git.example/a", "ghp_abcdef", "git.example/a"),
    ("https://hooks.slack.com/services/T000/B000/XXXXabcd1234 returned 404", "XXXXabcd1234", "returned 404"),
    ('{\\"api_key\\": \\"abcd1234efgh5678\\", \\"model\\": \\"gpt-4o\\"}', "abcd1234efgh5678", "gpt-4o"),
    ("tool --api-key abcd1234efgh --verbose", "abcd1234efgh", "--verbose"),
    ("curl -u admin:secretpw https://a.example", "secretpw", "https://a.example"),
    ("bad token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdef", "eyJhbGciOiJIUzI1NiJ9", "bad token"),
    ("loading:\n-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN\nBgkqhkiG9w0B\n", "BgkqhkiG9w0B", "loading:"),
    ("gsk_abcdefghijklmnopqrstuvwx rejected", "gsk_abcdef", "rejected"),
    # Names of keys, and of what is as good as one.
    ("OPENAI_KEY=abcd1234 MODEL=x", "abcd1234", "MODEL=x"),
    ("{'groq-key': 'abcd'}", "abcd", "groq-key"),
    ("ACME_KEY=abcd1234efgh started", "abcd1234", "started"),
    (f"x-auth: {HEX}", HEX, "x-auth"),
    (f"{{'x-auth': '{HEX}', 'x-id': '1'}}", HEX, "'x-id': '1'"),
    ("bearer: abc123xyz", "abc123", "bearer"),
    ("pw: hunter2, user: x", "hunter2", "user: x"),
    ("PASS=hunter2 USER=x", "hunter2", "USER=x"),
    ("password -> hunter2 (user x)", "hunter2", "(user x)"),
    # Sentences.
    (f"api key {HEX} invalid", HEX, "invalid"),
    (f"The API key {HEX} is not known", HEX, "is not known"),
    ("your password is hunter2...", "hunter2", "your password is"),
    ("password is 'correct horse', user x", "correct horse", "user x"),
    ("OPENAI_API_KEY abcd1234efgh5678 was rejected", "abcd1234", "was rejected"),
    # Encoded for an address or a page.
    ("api_key%3Dabcd1234%26model%3Dgpt-4o", "abcd1234", "model%3Dgpt-4o"),
    ("%7B%22api_key%22%3A%22abcd1234%22%2C%22model%22%3A%22m%22%7D", "abcd1234", "model"),
    ("&quot;api_key&quot;: &quot;abcd1234&quot;, &quot;model&quot;", "abcd1234", "model"),
    # Quoted, with a quote or a new line inside.
    (r"password='it\'s hidden here' user=x", "hidden", "user=x"),
    (r'"password": "a\"b hidden\" c", "user": "x"', "hidden", '"user": "x"'),
    (r"{\"password\": \"a\\\"b hidden\", \"user\": \"x\"}", "hidden", r"\"user\": \"x\""),
    ('password="line one\nline two hidden" user=x', "hidden", "user=x"),
    ("password='never closed hidden\nuser=x", "hidden", "user=x"),
    # Not text alone.
    ('{"password": ["abc", "hidden"], "user": "x"}', "hidden", '"user": "x"'),
    ('{"credentials": {"a": {"value": "hidden"}}, "user": "x"}', "hidden", '"user": "x"'),
    ('{"token": {"value": "hidden12345", "type": "bearer"}}', "hidden", '"type": "bearer"'),
    ('{"password": 1234567, "id": 7654321}', "1234567", "7654321"),
    # One of several.
    ("amqp://u:first1@a.example,amqp://u:hidden2@b.example", "hidden2", "b.example"),
    ("sent Cookie: a=b; session=hidden and", "hidden", "sent Cookie"),
    ("tool --password 'two hidden' --verbose", "hidden", "--verbose"),
    ("AAAABBBBCCCCDDDD\nEEEEFFFFGGGGHHHH\n-----END RSA PRIVATE KEY-----\nthen", "EEEEFFFF", "then"),
]

KEPT = [
    "The api_key client option must be set either by passing api_key or by OPENAI_API_KEY",
    'FATAL:  password authentication failed for user "jobs_app"',
    "Bearer token is missing. Basic authentication required",
    "max_tokens=4096 prompt_tokens: 1234567 token_count=99 cached_token=5",
    "Unexpected token: '<' at position 0",
    "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "image@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span 00f067aa0ba902b7",
    "(Please include the request ID 3e7a10c59bd24f6688f1c2a4d0b9e751 in your message.)",
    "chatcmpl-CkQw7NvTzLmRbYx9HsPdJcUeGfA01 call_Yt5GhJk2LmNbVcXz9QwErTyU",
    "Idempotency-Key: 0f8c1d2e-aaaa-bbbb-cccc-1234567890ab",
    "http://10.42.3.17:8000/v1 localhost:11434 https://api.example/v1/users/@me",
    "epoch 1795881801 ms 1795881801123 ns 1795881801123456789",
    "trace 1234567890123456 bytes 17179869184",
    "KeyError: 'api_key'; api_key=os.environ",
    "2026-11-20T09:14:41.120331712+00:00 nginx/1.25.3 openai/1.59.5",
    '{"usage": {"prompt_tokens": 12, "completion_tokens": 5}, "tokens": 12, "token": 12, "max_tokens": 16}',
    "x-ratelimit-remaining-tokens: 149984 eos_token_id: 2 token limit of 8192 exceeded",
    f"request_id={HEX} x-request-id: {HEX} cache_key=user:{HEX}",
    "CACHE_KEY=abcd1234efgh5678 primary key: 1234abcd5678",
    "password is required; password is incorrect; api key is missing; the token is invalid",
    "password must be 8 characters, secrets: 3, tests pass: 12, author: jane123456, bypass: hunter2x",
    "error: invalid_token: The token expired",
    "Invalid API key: please check your key",
    '{"key": "abcd12345678"}',
]

PERSONAL = [
    ("write to hanna.weber+x@kanzlei.example now", "hanna.weber", "[email]"),
    ("jürgen.müller@büro.example", "müller", "[email]"),
    ("call 0171 / 555 01 42 or (415) 555-0142", "555", "[phone]"),
    ("+49 (0)89 1234567", "1234567", "[phone]"),
    ("手机 13800138000，请回电", "13800138000", "请回电"),
    ("card 4111 1111 1111 1111 exp 12/27", "4111", "exp 12/27"),
    ("IBAN DE89 3704 0044 0532 0130 00", "3704", "[iban]"),
]


@pytest.mark.parametrize(("text", "secret", "kept"), SECRETS)
def test_secrets_go_before_storage(text: str, secret: str, kept: str) -> None:
    masked = mask_secrets(text)
    assert secret not in masked and "[masked]" in masked and kept in masked


@pytest.mark.parametrize("text", KEPT)
def test_what_is_no_secret_stays_untouched(text: str) -> None:
    assert mask(text) == text


@pytest.mark.parametrize(("text", "private", "kept"), PERSONAL)
def test_personal_data_is_hidden_on_display_only(text: str, private: str, kept: str) -> None:
    assert mask_secrets(text) == text
    assert private not in mask(text) and kept in mask(text)


def test_headers_lose_credentials_and_keep_ids() -> None:
    headers = {
        "authorization": "Bearer x",
        "set-cookie": "a=b",
        "x-api-key": "abc",
        "x-request-id": "req_1",
        "api-key": "a",
    }
    masked = mask_headers({**headers, "location": "https://a.example/?key=abcdef123"})
    assert [name for name, value in masked.items() if value == "[masked]"] == [
        "authorization",
        "set-cookie",
        "x-api-key",
        "api-key",
    ]
    assert masked["x-request-id"] == "req_1" and masked["location"] == "https://a.example/?key=[masked]"


def test_values_are_masked_by_their_key_at_any_depth() -> None:
    body = {"config": [{"db_password": "x", "password": None, "max_tokens": 5, "note": "token=abcd1234efgh"}]}
    assert mask_value(body) == {
        "config": [{"db_password": "[masked]", "password": None, "max_tokens": 5, "note": "token=[masked]"}]
    }


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        ({"password": ["a", 7, True, None]}, {"password": [MASKED, MASKED, True, None]}),
        ({"api_keys": ["a", {"name": "b"}]}, {"api_keys": [MASKED, {"name": MASKED}]}),
        ({"credentials": {"value": "a", "at": 5}}, {"credentials": {"value": MASKED, "at": MASKED}}),
        ({"token": {"value": "a", "type": "bearer", "n": 5}}, {"token": {"value": MASKED, "type": "bearer", "n": 5}}),
        ({"tokens": ["abcd1234efgh", "hello"]}, {"tokens": [MASKED, "hello"]}),
        ({"Authorization": ["Bearer x"]}, {"Authorization": [MASKED]}),
        ({"openaiApiKey": "a"}, {"openaiApiKey": MASKED}),
        ({"sk-abcdefghijklmnop1234": 1}, {MASKED: 1}),
        ({"a": {"pw": {"b": {"c": "d"}}}}, {"a": {"pw": {"b": {"c": MASKED}}}}),
    ],
)
def test_values_that_are_no_texts(value: object, masked: object) -> None:
    assert mask_value(value) == masked


@pytest.mark.parametrize(
    "value",
    [
        {"usage": {"prompt_tokens": 3, "completion_tokens_details": {"reasoning_tokens": 4}}, "max_tokens": 5},
        {"token": 12, "tokens": 12, "secrets": 3, "id": HEX, "request_id": HEX},
        {"password": None, "api_key": "", "secret": False, "key": "abcd12345678"},
    ],
)
def test_counts_and_ids_stay(value: object) -> None:
    assert mask_value(value) == value


def test_after_thousands_of_secrets_the_rest_is_hidden_as_a_whole() -> None:
    """What masking costs is bounded by this, whoever wrote the text."""
    text = mask_secrets("password=a;" * (MOST + 5_000) + " the end")
    assert text.count(f"password={MASKED};") == MOST and text.endswith(REST)
    assert mask_secrets(text) == text


def test_so_is_it_after_thousands_of_names_without_a_secret() -> None:
    text = mask_secrets("token: none;" * (4 * MOST + 100) + " the end")
    assert text.endswith(REST) and text.count("token: none;") == 4 * MOST
    assert mask_secrets(text) == text


@pytest.mark.parametrize("edge", range(0, 60, 7))
@pytest.mark.parametrize("tail", [0, 500])
def test_a_secret_across_a_cut_is_not_half_shown(edge: int, tail: int) -> None:
    """Masking shortens what stands before the edge, which would bring the edge into sight."""
    secret = "password='" + "hidden" * 8 + "'"
    text = "password='a very long one that shrinks a lot when it is masked' " * 400 + " " * edge + secret * 4_000
    short = cut(text, 9_000, tail=tail, clean=mask_secrets)
    assert len(short) <= 9_000 and "hidden" not in short and "idden" not in short and "[cut: " in short


@pytest.mark.parametrize(
    "name",
    ["X-API-Key", "refresh_token", "cookie", "X-Auth", "credentials", "authorization", "openai_key", "openaiApiKey"],
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    ["max_tokens", "x-request-id", "idempotency-key", "key", "www-authenticate", "x-ratelimit-remaining-tokens"],
)
def test_names_of_other_things(name: str) -> None:
    assert not is_secret_name(name)
