"""The web process: refuses to start without a key, and shares a bounded pool of connections."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

ROOT = Path(__file__).resolve().parents[2]
ASK = """
import config.asgi
from concurrent.futures import ThreadPoolExecutor
from django.db import close_old_connections, connection

def ask(n):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(0.01)")
    close_old_connections()

with ThreadPoolExecutor(40) as threads:
    list(threads.map(ask, range(200)))
with connection.cursor() as cursor:
    cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'redrive-pool-test'")
    print(cursor.fetchone()[0])
connection.close_pool()
"""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own."""
    clean = {name: value for name, value in os.environ.items() if name not in {"SECRET_KEY", "DJANGO_SETTINGS_MODULE"}}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT, env={**clean, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("module", ["config.asgi", "config.wsgi"])
def test_no_secret_key_is_a_sentence(module: str, tmp_path: Path) -> None:
    done = run(f"import {module}", REDRIVE_DATA_DIR=str(tmp_path))
    assert done.returncode == 1
    assert "The web process needs SECRET_KEY." in done.stderr


def test_forty_threads_share_at_most_ten_connections(test_database_url: str) -> None:
    url = psycopg.conninfo.make_conninfo(test_database_url, application_name="redrive-pool-test")
    done = run(ASK, DATABASE_URL=url, SECRET_KEY="only-for-tests", DJANGO_SETTINGS_MODULE="config.settings")
    assert done.returncode == 0, done.stderr
    assert 1 <= int(done.stdout) <= 10
