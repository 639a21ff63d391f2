"""Every form in which a provider says when to come back."""

from __future__ import annotations

from typing import Any

import pytest

from tasks.errors import Failure, retry_after

NOW = 1_795_881_600.0
DATE = "Sat, 28 Nov 2026 16:00:00 GMT"


def body_headers(**headers: str) -> dict[str, Any]:
    return {"error": {"code": 429, "metadata": {"headers": headers}}}


@pytest.mark.parametrize(
    ("parts", "seconds"),
    [
        ({"headers": {"Retry-After": "2"}}, 2.0),
        ({"headers": {"retry-after": "1.5"}}, 1.5),
        ({"headers": {"retry-after": "0"}}, 0.1),
        ({"headers": {"retry-after": "86400"}}, 86_400.0),
        # At most a day; what is no time to come back is passed over, so that the next hint counts.
        ({"headers": {"retry-after": "90000"}}, 86_400.0),
        ({"headers": {"retry-after": "30 days"}}, 86_400.0),
        ({"headers": {"retry-after-ms": "99999999999"}}, None),
        ({"headers": {"retry-after": "-3"}}, None),
        ({"headers": {"retry-after": "-3s"}}, None),
        ({"headers": {"retry-after": "-3", "retry-after-ms": "-1"}, "message": "try again in 5s"}, 5.0),
        ({"headers": {"retry-after": "99999999"}}, None),
        ({"headers": {"retry-after": "99999999999999999999"}}, None),
        ({"headers": {"retry-after": "inf"}}, None),
        ({"headers": {"retry-after": "1e9"}}, None),
        ({"headers": {"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}}, None),
        ({"headers": {"retry-after": "9999-12-31T23:59:59+00:00"}, "message": "retry after 26 seconds"}, 26.0),
        ({"headers": {"retry-after": "0001-01-01T00:00:00+14:00"}}, None),
        ({"headers": {"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}}, None),
        ({"headers": {"retry-after": "Sun, 06 Nov 99999 08:49:37 GMT"}}, None),
        ({"headers": {"retry-after": "Wed, 02 Dec 2026 16:00:00 GMT", "date": DATE}}, 86_400.0),
        ({"http_status": 429, "headers": {"x-ratelimit-reset": "999999999999999999"}}, None),
        ({"http_status": 429, "headers": {"ratelimit": f"t={'9' * 400}"}}, None),
        ({"body": {"error": {"details": [{"retryDelay": f"{'9' * 100}s"}]}}}, None),
        ({"body": {"retry_after": 1e300}}, None),
        ({"body": {"retry_after": float("nan")}}, None),
        ({"body": {"retry_after": float("inf"), "message": "try again in 2s"}}, 2.0),
        ({"body": {"retry_after": -5}}, None),
        ({"body": {"retry_after": {"seconds": 5}}}, None),
        ({"message": f"try again in {'9' * 400} days"}, None),
        ({"message": f"请在 {'9' * 400} 秒后重试"}, None),
        ({"headers": {"retry-after": "20s"}}, 20.0),
        ({"headers": {"retry-after-ms": "766", "retry-after": "1"}}, 0.766),
        ({"headers": {"retry-after-ms": "5"}}, 0.1),
        ({"headers": {"retry-after": "Sat, 28 Nov 2026 16:00:30 GMT", "date": DATE}}, 30.0),
        ({"headers": {"retry-after": "Sat, 28 Nov 2026 15:59:30 GMT", "date": DATE}}, 0.1),
        ({"headers": {"retry-after": str(int(NOW) + 12)}}, 12.0),
        ({"headers": {"retry-after": str(int(NOW + 12) * 1000)}}, 12.0),
        ({"headers": {"retry-after": "soon"}}, None),
        ({"headers": {"retry-after": "nan"}}, None),
        ({"headers": {"retry-after": "9" * 400}}, None),
        ({"headers": {"x-ratelimit-reset-requests": "6m0s"}}, None),
        ({"http_status": 429, "headers": {"x-ratelimit-reset-tokens": "7m12s"}}, 432.0),
        (
            {
                "http_status": 429,
                "headers": {
                    "x-ratelimit-reset-requests": "1s",
                    "x-ratelimit-remaining-requests": "9",
                    "x-ratelimit-reset-tokens": "45s",
                    "x-ratelimit-remaining-tokens": "0",
                },
            },
            45.0,
        ),
        (
            {"http_status": 429, "headers": {"anthropic-ratelimit-tokens-reset": "2026-11-28T16:00:05Z", "date": DATE}},
            5.0,
        ),
        ({"http_status": 429, "headers": {"ratelimit": '"default";r=0;t=30'}}, 30.0),
        ({"http_status": 429, "body": body_headers(**{"X-RateLimit-Reset": str(int(NOW + 90) * 1000)})}, 90.0),
        ({"body": {"error": {"details": [{"@type": "google.rpc.RetryInfo", "retryDelay": "47.5s"}]}}}, 47.5),
        ({"message": "429. {'details': [{'retryDelay': '47s'}]}"}, 47.0),
        ({"body": {"error": "is loading", "estimated_time": 20.0}}, 20.0),
        ({"message": "Please try again in 7m12s. Visit"}, 432.0),
        ({"message": "Please try again in 1h2m3.5s."}, 3723.5),
        ({"message": "Please try again in 766ms."}, 0.766),
        ({"message": "try again in 5 seconds. Passed model"}, 5.0),
        ({"message": "Please retry after 26 seconds."}, 26.0),
        ({"message": "Quota will reset after 2 hours and 5 minutes"}, 7_500.0),
        ({"message": "请求过多，请在 5 秒后重试"}, 5.0),
        ({"message": "please try again later"}, None),
        ({"message": "timed out after 120 seconds"}, None),
    ],
)
def test_hints(parts: dict[str, Any], seconds: float | None) -> None:
    hint = retry_after(Failure(**parts), now=NOW)
    assert hint == (None if seconds is None else pytest.approx(seconds))


def test_a_date_counts_from_now_without_a_date_header() -> None:
    failure = Failure(headers={"retry-after": "Sat, 28 Nov 2026 16:01:00 GMT"})
    assert retry_after(failure, now=NOW) == pytest.approx(60.0)
