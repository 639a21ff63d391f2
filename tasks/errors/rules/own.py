"""What Redrive finds itself, and the end of processes: cancelled, lost, out of a machine's resources."""

from tasks.errors.rule import Rule, either

_OURS = r"^tasks\.errors\.faults\."

RULES = (
    Rule(code="AI_OUTPUT_TRUNCATED", exception=_OURS + "AnswerTruncated$"),
    Rule(code="AI_CONTENT_FILTERED", exception=_OURS + "AnswerFiltered$"),
    Rule(code="AI_OUTPUT_EMPTY", exception=_OURS + "AnswerEmpty$"),
    Rule(code="AI_OUTPUT_MALFORMED", exception=_OURS + "AnswerMalformed$"),
    Rule(code="AI_CONNECTION_FAILED", exception=_OURS + "StreamCut$"),
    Rule(code="AI_MODEL_TIMEOUT", exception=_OURS + "(AttemptTimeout|Stalled)$"),
    Rule(code="AI_CONFIG_INVALID", exception=_OURS + "ConfigurationFault$"),
    Rule(code="AI_INPUT_INVALID", exception=_OURS + "InputInvalid$"),
    Rule(code="AI_PROVIDER_HELD", exception=_OURS + "ProviderAtRest$"),
    # A worker of another library that was killed, or a pool that lost a process.
    Rule(
        code="AI_WORKER_LOST",
        exception=r"\.(WorkerLostError|BrokenProcessPool|ProcessRaisedException|WorkerShutdown"
        r"|WorkerTerminate)$",
    ),
    Rule(
        code="AI_WORKER_LOST",
        message=either(
            r"worker exited prematurely|terminated abruptly while the future|worker \(pid:? ?\d+\) was sent SIG",
            r"cannot schedule new futures after (interpreter )?shutdown",
        ),
    ),
    Rule(code="AI_MODEL_TIMEOUT", exception=r"\.(SoftTimeLimitExceeded|TimeLimitExceeded)$"),
    # Cancelled by itself; under a timeout the CancelledError is not among the classes at all.
    Rule(
        code="AI_CANCELLED",
        exception=r"(^|\.)(CancelledError|Cancelled|KeyboardInterrupt|GeneratorExit|TaskRevokedError"
        r"|APIUserAbortError)$",
    ),
    Rule(code="AI_CANCELLED", http_status="499"),
    Rule(
        code="AI_CANCELLED",
        message=either(
            r"\bStatusCode\.CANCELLED\b|\b499 (CANCELLED|client closed request)",
            r"operation was cancelled by the user",
        ),
    ),
    Rule(code="AI_RESOURCE_EXHAUSTED", exception=r"^(builtins\.)?MemoryError$"),
    Rule(
        code="AI_RESOURCE_EXHAUSTED",
        message=either(
            r"\[Errno (24|23|28|122|12)\]|too many open files|no space left on device|disk quota exceeded",
            r"\[Errno 11\]|can't start new thread|could not extend file|inotify.*limit",
        ),
    ),
)
