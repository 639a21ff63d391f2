"""Reading failures: what went wrong, whether to try again, what may be shown. Knows no database."""

from tasks.errors.catalogue import BUILT_IN, Catalogue, Verdict, classify
from tasks.errors.codes import CODES, CodeSpec
from tasks.errors.failure import Failure
from tasks.errors.faults import (
    AnswerEmpty,
    AnswerFiltered,
    AnswerMalformed,
    AnswerTruncated,
    AttemptTimeout,
    ConfigurationFault,
    Fault,
    InputInvalid,
    ProviderAtRest,
    ProviderError,
    Stalled,
    StreamCut,
)
from tasks.errors.fingerprint import Fingerprint, fingerprint
from tasks.errors.hints import retry_after
from tasks.errors.mask import mask, mask_secrets
from tasks.errors.rule import Rule, RuleError

__all__ = [
    "BUILT_IN",
    "CODES",
    "AnswerEmpty",
    "AnswerFiltered",
    "AnswerMalformed",
    "AnswerTruncated",
    "AttemptTimeout",
    "Catalogue",
    "CodeSpec",
    "ConfigurationFault",
    "Failure",
    "Fault",
    "Fingerprint",
    "InputInvalid",
    "ProviderAtRest",
    "ProviderError",
    "Rule",
    "RuleError",
    "Stalled",
    "StreamCut",
    "Verdict",
    "classify",
    "fingerprint",
    "mask",
    "mask_secrets",
    "retry_after",
]
