"""Make a key for a program that uses the HTTP API."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import IntegrityError, transaction

from tasks import audit
from tasks.management.account import Account
from tasks.models import ApiKey
from tasks.models.api_key import SHOWN, Scope, digest_of, new_key


class Command(BaseCommand):
    """``createapikey NAME --scope submit|operate``: the key to stdout, once."""

    help = (
        "Make an API key and print it, once: only a digest is stored. --scope submit: submit tasks, watch and cancel"
        " them; operate: also read dead letters and reprocess them. Keys are revoked in the admin."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Its name and scope."""
        parser.add_argument("name", help="the program that will use it")
        parser.add_argument("--scope", choices=Scope.values, required=True, help="what the key opens")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the key. CommandError where the name cannot be taken."""
        name = _name(options["name"])
        key = new_key()
        account = Account.of("createapikey")
        try:
            with transaction.atomic():
                made = ApiKey.objects.create(
                    name=name,
                    scope=options["scope"],
                    start=key[:SHOWN],
                    digest=digest_of(key),
                    created_by=account.get_username(),
                )
                audit.record(account, "create_api_key", target_type="api_key", target_id=made.pk, data={"name": name})
        except IntegrityError:
            raise CommandError(
                f"There is a key “{name}” already. Revoke it in the admin, or choose another name."
            ) from None
        self.stdout.write(key)
        self.stderr.write(f"The key “{name}” was made ({options['scope']}). It is shown this once; keep it safe.")


def _name(text: str) -> str:
    name = text.strip()
    if not name or len(name) > 100 or not name.isprintable():
        raise CommandError("The name must be printable text of 1 to 100 characters.")
    return name
