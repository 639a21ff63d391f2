"""What ended attempts spent at limited providers beyond the request that was counted as they began.

An end appends it; whoever looks at the limit next takes it over (``limits.rooms``).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from django.db import connection

from tasks.lifecycle.end import End

# Charges of providers without a rate are of no use to anybody. One request is counted already: by the claim for the
# attempt's provider, and for another with the place that the attempt took there.
CHARGE = """
INSERT INTO tasks_limitcharge (provider, at, requests, tokens)
SELECT c.provider, now(), c.requests - (a.provider_id IS NOT DISTINCT FROM c.provider OR EXISTS (
    SELECT 1 FROM tasks_limitplace t
    WHERE t.attempt_id = a.id AND t.provider = c.provider AND t.waits_until IS NULL))::int, c.tokens
FROM jsonb_to_recordset(%s::jsonb) AS c(attempt_id bigint, provider text, requests int, tokens bigint)
JOIN tasks_attempt a ON a.id = c.attempt_id
JOIN tasks_provider p ON p.name = c.provider
WHERE num_nonnulls(p.requests_per_minute, p.tokens_per_minute) > 0
"""


def charge(ends: Iterable[End]) -> None:
    """Append what ended attempts spent: their tokens, and the calls beyond the one that the claim counted."""
    rows = [row for end in ends if end.usage.calls for row in _spent(end)]
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(CHARGE, [json.dumps(rows)])


def _spent(end: End) -> list[dict[str, Any]]:
    calls, tokens = Counter[str](), Counter[str]()
    for call in end.usage.calls:
        calls[call["provider_name"]] += 1
        tokens[call["provider_name"]] += (call.get("input_tokens") or 0) + (call.get("output_tokens") or 0)
    return [
        {"attempt_id": end.attempt_id, "provider": name, "requests": calls[name], "tokens": tokens[name]}
        for name in calls
    ]


FORGET = """
DELETE FROM tasks_limitcharge WHERE id IN (
    SELECT id FROM tasks_limitcharge WHERE at < now() - interval '5 minutes' ORDER BY id LIMIT 10000)
"""


def forget_charges() -> int:
    """Delete charges that have left every window and that no claim came to take; how many, 10,000 at the most."""
    with connection.cursor() as cursor:
        cursor.execute(FORGET)
        return int(cursor.rowcount)
