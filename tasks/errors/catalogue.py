"""The catalogue: error codes, and the ordered rules that give a failure its code. A value, built once, asked often."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from tasks.errors.codes import CODES, UNKNOWN, CodeSpec
from tasks.errors.evidence import Evidence
from tasks.errors.failure import Failure
from tasks.errors.rule import Rule, RuleError
from tasks.errors.rules import RULES
from tasks.errors.text import as_text
from tasks.states import Cause, Level

#: Built-in rules are numbered from here on, those of operators below come first whatever their position.
BUILT_IN_POSITION = 100_000


@dataclass(frozen=True)
class Verdict:
    """What a failure is: its code, the policy that holds (the rule's override applied), and the rule that said so."""

    code: str
    spec: CodeSpec
    rule: Rule | None

    @property
    def retryable(self) -> bool:
        """Whether a retry can mend it."""
        return self.spec.retryable

    @property
    def level(self) -> Level:
        """How far it spreads."""
        return self.spec.level

    @property
    def cause(self) -> Cause:
        """Whose fault it is."""
        return self.spec.cause


@dataclass(frozen=True)
class Catalogue:
    """Codes by name and rules in the order in which they are asked."""

    codes: Mapping[str, CodeSpec]
    rules: tuple[Rule, ...]

    @classmethod
    def build(cls, code_rows: Iterable[Mapping[str, Any]], rule_rows: Iterable[Mapping[str, Any]]) -> Catalogue:
        """The built-in catalogue with an operator's codes and rules; theirs win.

        Rows are mappings with the field names of CodeSpec and Rule. What a code's row does not have is the built-in
        value, for a code of their own the default; None is a value like any other: the kind decides. Raises RuleError
        for a broken pattern, an unknown code or a bad value.
        """
        codes = dict(CODES)
        for row in code_rows:
            spec = _code(row)
            codes[spec.code] = spec
        own = sorted((_rule(row, codes) for row in rule_rows), key=lambda rule: rule.position)
        return cls(codes, (*own, *BUILT_IN.rules))

    def classify(self, failure: Failure, kind: str | None = None) -> Verdict:
        """The verdict on one failure; with no rule that holds, AI_UNKNOWN_ERROR."""
        evidence = Evidence(failure, as_text(kind or ""))
        rule = next((rule for rule in self.rules if rule.matches(evidence)), None)
        spec = self.codes[rule.code if rule else UNKNOWN]
        if rule and rule.retryable is not None and rule.retryable != spec.retryable:
            spec = replace(spec, retryable=rule.retryable)
        return Verdict(spec.code, spec, rule)

    def checked(self) -> Catalogue:
        """This catalogue, every rule of it checked and compiled. Raises RuleError."""
        for rule in self.rules:
            rule.check()
        return self


#: The catalogue that ships with Redrive, its patterns compiled: the first failure costs no more than the next.
BUILT_IN = Catalogue(
    CODES, tuple(replace(rule, position=BUILT_IN_POSITION + 10 * at) for at, rule in enumerate(RULES))
).checked()


def classify(failure: Failure, kind: str | None = None) -> Verdict:
    """The verdict of the built-in catalogue."""
    return BUILT_IN.classify(failure, kind)


#: The policies that a code may leave to the kind.
_MAY_BE_NONE = frozenset(field.name for field in fields(CodeSpec) if field.default is None)


def _code(row: Mapping[str, Any]) -> CodeSpec:
    name = str(row.get("code") or "")
    given = {field.name: row[field.name] for field in fields(CodeSpec) if field.name in row}
    try:
        if empty := sorted(key for key, value in given.items() if value is None and key not in _MAY_BE_NONE):
            raise ValueError(f"{', '.join(empty)} must not be empty")
        if "level" in given:
            given["level"] = Level(given["level"])
        if "cause" in given:
            given["cause"] = Cause(given["cause"])
        start = CODES.get(name) or CodeSpec(code=name, level=Level.L1, cause=Cause.INTEGRATION, retryable=False)
        return replace(start, **given)
    except ValueError as error:
        raise RuleError(f"error code {name or '(nameless)'}: {error}") from error


def _rule(row: Mapping[str, Any], codes: Mapping[str, CodeSpec]) -> Rule:
    given = {field.name: row[field.name] for field in fields(Rule) if row.get(field.name) is not None}
    rule = Rule(**{"code": "", **given})
    try:
        if rule.code not in codes:
            raise RuleError(f"there is no error code {rule.code!r}")
        rule.check()
    except RuleError as error:
        raise RuleError(f"rule {rule.position} ({rule.code}): {error}") from error
    return rule
