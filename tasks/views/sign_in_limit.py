"""How often one may try to sign in: a name from an address, over all web processes."""

from __future__ import annotations

import logging
import unicodedata
from hashlib import sha256
from ipaddress import IPv6Address, ip_address

from django.conf import settings
from django.db import connection
from django.http import HttpRequest

from tasks.models import SignInTries

logger = logging.getLogger(__name__)

#: Tries of one name from one address within ``WINDOW`` seconds of the first; then none until those are over.
MOST = 10
WINDOW = 300

# Counted before the password is looked at, so that tries side by side cannot pass together. The window begins with the
# first try and is moved by no later one: whoever is refused gets in again when it ends, however often they try.
COUNT = """
INSERT INTO tasks_signintries AS t (key, tries, since) VALUES (%(key)s, 1, now())
ON CONFLICT (key) DO UPDATE SET
    tries = CASE WHEN t.since <= now() - %(window)s * interval '1 second' THEN 1 ELSE t.tries + 1 END,
    since = CASE WHEN t.since <= now() - %(window)s * interval '1 second' THEN now() ELSE t.since END
RETURNING tries, ceil(%(window)s - extract(epoch FROM now() - since))::int
"""
FORGET = """
DELETE FROM tasks_signintries WHERE key IN (
    SELECT key FROM tasks_signintries WHERE since <= now() - %(window)s * interval '1 second' FOR UPDATE SKIP LOCKED
)
"""


def seconds_to_wait(request: HttpRequest) -> int:
    """Count a try; 0 where it may be made, else the seconds until the next may."""
    with connection.cursor() as cursor:
        cursor.execute(COUNT, {"key": _key(request), "window": WINDOW})
        tries, wait = cursor.fetchone()
        if tries == 1:
            cursor.execute(FORGET, {"window": WINDOW})
    if tries == MOST + 1:
        logger.warning("sign-in: %d tries of one name from %s; refused for %d s", MOST, _address(request), wait)
    return max(1, wait) if tries > MOST else 0


def forget(request: HttpRequest) -> None:
    """The right password came: the tries before it count no more."""
    SignInTries.objects.filter(key=_key(request)).delete()


def _key(request: HttpRequest) -> str:
    name = unicodedata.normalize("NFKC", request.POST.get("username", "")).strip().casefold()
    return sha256(f"{name}\0{_address(request)}".encode()).hexdigest()


def _address(request: HttpRequest) -> str:
    """Where the request comes from: with TRUST_PROXY what the proxy next to us says. Of IPv6 the network of a site."""
    said = request.META.get("REMOTE_ADDR", "")
    if settings.TRUST_PROXY:
        said = request.headers.get("x-forwarded-for", said).rpartition(",")[2].strip()
    try:
        address = ip_address(said)
    except ValueError:
        return ""
    return str(IPv6Address(int(address) >> 64 << 64)) if isinstance(address, IPv6Address) else said
