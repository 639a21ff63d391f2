"""The catalogue with the operators' codes and rules, as the workers use it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from tasks.errors import Catalogue, CodeSpec, Rule, RuleError
from tasks.models import ErrorCode, ErrorRule

logger = logging.getLogger(__name__)
Row = Mapping[str, Any]
_said: set[str] = set()
CODE_FIELDS = [field.name for field in fields(CodeSpec)]
RULE_FIELDS = [field.name for field in fields(Rule) if hasattr(ErrorRule, field.name) and field.name != "code"]


def load_catalogue() -> Catalogue:
    """Built-in rules and the enabled rules of the database, operators' first. Two small queries.

    A broken code or rule cannot be saved; one that slipped in by SQL is skipped and logged, as the others must go on. A
    code that ships with Redrive then means what it means there.
    """
    codes = list(ErrorCode.objects.values(*CODE_FIELDS))
    rules = [
        {"code": rule.pop("code_id"), **rule}
        for rule in ErrorRule.objects.filter(enabled=True).values("code_id", *RULE_FIELDS)
    ]
    try:
        return Catalogue.build(codes, rules)
    except RuleError:
        good = [code for code in codes if _is_usable([code], [])]
        return Catalogue.build(good, [rule for rule in rules if _is_usable(good, [rule])])


def _is_usable(codes: Sequence[Row], rules: Sequence[Row]) -> bool:
    try:
        Catalogue.build(codes, rules)
    except RuleError as error:
        _say_once(f"Skipped what is broken in the catalogue: {error}")
        return False
    return True


def _say_once(sentence: str) -> None:
    """The catalogue is read every few seconds; the log need not say so."""
    if sentence not in _said:
        _said.add(sentence)
        logger.error(sentence)
