"""The built-in error codes: what each means, whether a retry can mend it, what to tell whom."""

from __future__ import annotations

from dataclasses import dataclass

from tasks.states import Cause, Level


@dataclass(frozen=True, kw_only=True)
class CodeSpec:
    """One error code and its policy. Times are in seconds; None means that the kind's own value holds.

    ``retryable``: whether a retry can mend it. ``uses_budget``: False makes the retry a snooze, which costs no attempt.
    ``cools_provider``: a time named by the provider rests the provider, not the task alone. ``holds_provider``: the
    provider is stopped until a person or a probe releases it. ``action`` is the stable name of what is done beyond
    that. ``title``, ``runbook`` and ``next_step`` are for operators, ``user_message`` is safe for the end user.
    """

    code: str
    level: Level
    cause: Cause
    retryable: bool
    uses_budget: bool = True
    cools_provider: bool = False
    holds_provider: bool = False
    max_attempts: int | None = None
    initial_interval_seconds: float | None = None
    backoff_coefficient: float | None = None
    maximum_interval_seconds: float | None = None
    action: str = ""
    title: str = ""
    user_message: str = ""
    runbook: str = ""
    next_step: str = ""


LATER = "The service is busy at the moment. We will try again by ourselves."
FAILED = "This request could not be completed. Our team has been told."
CHANGE = "This request could not be completed as it is. Please change it and try again."
SHORTER = "This request is too long. Please shorten it and try again."

_CODES = (
    CodeSpec(
        code="AI_RATE_LIMITED",
        level=Level.L3,
        cause=Cause.INTEGRATION,
        retryable=True,
        uses_budget=False,
        cools_provider=True,
        action="snooze",
        title="The provider's rate limit is reached",
        user_message=LATER,
        runbook="The provider counts requests or tokens per minute and refuses more. Redrive waits as long as the"
        " provider asks, without using attempts. If it lasts, compare the provider's limits with those set here.",
        next_step="Lower the provider's requests and tokens per minute here, or ask the provider for more.",
    ),
    CodeSpec(
        code="AI_QUOTA_EXHAUSTED",
        level=Level.L3,
        cause=Cause.INTEGRATION,
        retryable=False,
        holds_provider=True,
        action="hold_provider",
        title="The provider's quota or credit is used up",
        user_message=FAILED,
        runbook="Balance, budget, or daily or monthly quota is used up; no short wait helps. The provider is held, so"
        " that no further task dies of it.",
        next_step="Top up or raise the limit at the provider, release the provider here, then reprocess.",
    ),
    CodeSpec(
        code="AI_MODEL_TIMEOUT",
        level=Level.L1,
        cause=Cause.MODEL,
        retryable=True,
        action="retry",
        title="The model did not answer in time",
        user_message=LATER,
        runbook="No answer, or no further token, arrived in the time allowed. Long prompts, long answers and a busy"
        " model are the usual causes.",
        next_step="If it repeats: stream, shorten the answer, or raise the kind's timeout.",
    ),
    CodeSpec(
        code="AI_CONNECTION_FAILED",
        level=Level.L3,
        cause=Cause.INFRASTRUCTURE,
        retryable=True,
        action="retry",
        title="No connection to the provider, or it was cut",
        user_message=LATER,
        runbook="Refused, reset, not resolved, or cut in the middle of an answer. A cut call may have been paid for.",
        next_step="Check address, network and proxy; for a server of your own, check that it runs.",
    ),
    CodeSpec(
        code="AI_CONTENT_FILTERED",
        level=Level.L1,
        cause=Cause.INPUT,
        retryable=False,
        action="ask_user",
        title="The provider's content filter refused it",
        user_message="This request was refused by a content filter. Please rephrase it.",
        runbook="The prompt or the answer met the provider's content policy. The same input meets it again.",
        next_step="Look at the input; rephrase it, or use another provider where that is allowed.",
    ),
    CodeSpec(
        code="AI_CONTEXT_TRUNCATED",
        level=Level.L1,
        cause=Cause.INPUT,
        retryable=False,
        action="reduce_input",
        title="The input does not fit the model's context",
        user_message=SHORTER,
        runbook="Prompt and answer together exceed the model's context window.",
        next_step="Shorten the input, lower the output limit, or choose a model with a larger window.",
    ),
    CodeSpec(
        code="AI_OUTPUT_MALFORMED",
        level=Level.L1,
        cause=Cause.MODEL,
        retryable=True,
        action="retry",
        title="The answer is not what was asked for",
        user_message=FAILED,
        runbook="The answer is no JSON, does not fit its schema, or misses its envelope. Sampling may mend it.",
        next_step="If it repeats: simplify the schema, show an example in the prompt, or choose a stronger model.",
    ),
    CodeSpec(
        code="AI_MODEL_OOM",
        level=Level.L3,
        cause=Cause.INFRASTRUCTURE,
        retryable=False,
        action="reduce_input",
        title="The model server ran out of memory",
        user_message=FAILED,
        runbook="The model, its cache or this request needs more memory than the server has.",
        next_step="Shorten the request, choose a smaller model, or give the server more memory.",
    ),
    CodeSpec(
        code="AI_AUTH_FAILED",
        level=Level.L3,
        cause=Cause.INTEGRATION,
        retryable=False,
        holds_provider=True,
        action="hold_provider",
        title="The provider refuses our key",
        user_message=FAILED,
        runbook="The API key is wrong, expired or revoked. The provider is held, so that no further task dies of it.",
        next_step="Set a valid key, restart the workers, release the provider, then reprocess.",
    ),
    CodeSpec(
        code="AI_MODEL_NOT_FOUND",
        level=Level.L3,
        cause=Cause.INTEGRATION,
        retryable=False,
        action="fix_configuration",
        title="The model does not exist there",
        user_message=FAILED,
        runbook="The model's name is wrong, retired, or not deployed for this account.",
        next_step="Set a model that the provider offers, then reprocess.",
    ),
    CodeSpec(
        code="AI_INPUT_INVALID",
        level=Level.L1,
        cause=Cause.INPUT,
        retryable=False,
        action="fix_input",
        title="The provider refuses the request as invalid",
        user_message=CHANGE,
        runbook="A parameter or the content is not accepted. The same request is refused again.",
        next_step="Read the provider's message; mend the payload or the kind's settings, then reprocess.",
    ),
    CodeSpec(
        code="AI_UPSTREAM_5XX",
        level=Level.L3,
        cause=Cause.INFRASTRUCTURE,
        retryable=True,
        action="retry",
        title="The provider had an error of its own",
        user_message=LATER,
        runbook="The provider or a gateway before it answered with a server error.",
        next_step="If it lasts, look at the provider's status page.",
    ),
    CodeSpec(
        code="AI_OVERLOADED",
        level=Level.L3,
        cause=Cause.INFRASTRUCTURE,
        retryable=True,
        action="retry",
        title="The provider is overloaded",
        user_message=LATER,
        runbook="The provider has no capacity at the moment; it is not our limit that is reached.",
        next_step="If it lasts, use another model or provider for a while.",
    ),
    CodeSpec(
        code="AI_PROVIDER_HELD",
        level=Level.L3,
        cause=Cause.INTEGRATION,
        retryable=True,
        uses_budget=False,
        initial_interval_seconds=10.0,
        backoff_coefficient=2.0,
        maximum_interval_seconds=300.0,
        action="snooze",
        title="The provider is on hold, cools or has no room",
        user_message=LATER,
        runbook="A handler asked for another provider than its kind's, and nothing may be sent to that one now. The"
        " task is put off without using attempts.",
        next_step="Look at /kinds/ for why it is on hold, and release it there once its cause is gone. Where its limits"
        " are used up, raise them, or wait.",
    ),
    CodeSpec(
        code="AI_TOOL_FAILED",
        level=Level.L1,
        cause=Cause.INTEGRATION,
        retryable=True,
        action="retry",
        title="A tool that the model called failed",
        user_message=FAILED,
        runbook="A tool, an MCP server or a command started for the model failed, or the model named an unknown tool.",
        next_step="Look at the tool's own error in the trail.",
    ),
    CodeSpec(
        code="AI_AGENT_LOOP",
        level=Level.L2,
        cause=Cause.MODEL,
        retryable=False,
        action="ask_user",
        title="The agent turned in circles",
        user_message=FAILED,
        runbook="The agent reached its limit of steps or repeated itself. Running again costs the same tokens again.",
        next_step="Look at the trail; change the task, the tools or the limit.",
    ),
    CodeSpec(
        code="AI_DB_UNAVAILABLE",
        level=Level.L3,
        cause=Cause.INFRASTRUCTURE,
        retryable=True,
        action="retry",
        title="A database is not available",
        user_message=LATER,
        runbook="The handler's database refused or lost the connection.",
        next_step="Check the database, its connection limit and its credentials.",
    ),
    CodeSpec(
        code="AI_CANCELLED",
        level=Level.L1,
        cause=Cause.INTEGRATION,
        retryable=False,
        action="none",
        title="The work was cancelled",
        user_message="This request was cancelled.",
        runbook="Somebody, or the code itself, cancelled the call.",
        next_step="Nothing, if it was meant; else reprocess.",
    ),
    CodeSpec(
        code="AI_UNKNOWN_ERROR",
        level=Level.L1,
        cause=Cause.INTEGRATION,
        retryable=True,
        action="retry",
        title="No rule knows this error",
        user_message=FAILED,
        runbook="No rule of the catalogue matches. A plain bug in our code is not retried; anything else is.",
        next_step="Read the traceback; give the error a code, so that the next one explains itself.",
    ),
    CodeSpec(
        code="AI_INPUT_TOO_LARGE",
        level=Level.L1,
        cause=Cause.INPUT,
        retryable=False,
        action="reduce_input",
        title="One request is larger than the provider takes",
        user_message=SHORTER,
        runbook="The request exceeds a limit that no waiting lifts: tokens per minute, bytes, pages or image size.",
        next_step="Split or shrink the request.",
    ),
    CodeSpec(
        code="AI_SESSION_CORRUPT",
        level=Level.L2,
        cause=Cause.INTEGRATION,
        retryable=False,
        action="freeze_session",
        title="The stored conversation is invalid",
        user_message="This conversation cannot go on. Please start a new one.",
        runbook="The message history breaks the provider's rules, so each later turn of this session fails as well.",
        next_step="Repair or restart the session, then reprocess.",
    ),
    CodeSpec(
        code="AI_PERMISSION_DENIED",
        level=Level.L3,
        cause=Cause.INTEGRATION,
        retryable=False,
        action="fix_configuration",
        title="The key is valid but not allowed to do this",
        user_message=FAILED,
        runbook="Region, account, model access or a bot challenge: the provider knows us and says no.",
        next_step="Ask for access at the provider, or use another model or provider.",
    ),
    CodeSpec(
        code="AI_TLS_FAILED",
        level=Level.L3,
        cause=Cause.INFRASTRUCTURE,
        retryable=False,
        action="fix_configuration",
        title="The TLS certificate or handshake failed",
        user_message=FAILED,
        runbook="The certificate is not trusted, expired or for another host, or the two sides share no protocol.",
        next_step="Install the certificate authority, or mend the server's certificate.",
    ),
    CodeSpec(
        code="AI_CONFIG_INVALID",
        level=Level.L3,
        cause=Cause.INTEGRATION,
        retryable=False,
        action="fix_configuration",
        title="Our own configuration is wrong",
        user_message=FAILED,
        runbook=(
            "The error says what is wrong. With a provider: a key is missing, or the base URL points at something that"
            " is not the API. With code: a function, module or handler that is not there, or arguments that do not fit."
        ),
        next_step="Mend what the error names, then reprocess.",
    ),
    CodeSpec(
        code="AI_OUTPUT_TRUNCATED",
        level=Level.L1,
        cause=Cause.INPUT,
        retryable=False,
        action="raise_output_limit",
        title="The answer was cut at the output limit",
        user_message=FAILED,
        runbook="The answer reached the output token limit and lacks its end. The same limit cuts it again.",
        next_step="Raise max_output_tokens, or ask for a shorter answer.",
    ),
    CodeSpec(
        code="AI_OUTPUT_EMPTY",
        level=Level.L1,
        cause=Cause.MODEL,
        retryable=True,
        action="retry",
        title="The model answered with nothing",
        user_message=FAILED,
        runbook="The answer carries no text and no tool call.",
        next_step="If it repeats: look at the prompt and at the output limit of a reasoning model.",
    ),
    CodeSpec(
        code="AI_MODEL_LOADING",
        level=Level.L3,
        cause=Cause.INFRASTRUCTURE,
        retryable=True,
        initial_interval_seconds=5.0,
        backoff_coefficient=2.0,
        maximum_interval_seconds=60.0,
        action="retry",
        title="The model is still being loaded",
        user_message=LATER,
        runbook="The server starts the model; that takes seconds to minutes.",
        next_step="If it lasts, look at the model server.",
    ),
    CodeSpec(
        code="AI_ENGINE_CRASHED",
        level=Level.L3,
        cause=Cause.INFRASTRUCTURE,
        retryable=True,
        initial_interval_seconds=5.0,
        backoff_coefficient=2.0,
        maximum_interval_seconds=60.0,
        action="retry",
        title="The inference engine crashed",
        user_message=LATER,
        runbook="The engine's process died. It answers again after its restart, unless this input kills it.",
        next_step="Look at the model server's log; if the same task crashes it again, discard the task.",
    ),
    CodeSpec(
        code="AI_DB_CONFLICT",
        level=Level.L1,
        cause=Cause.INFRASTRUCTURE,
        retryable=True,
        initial_interval_seconds=0.2,
        backoff_coefficient=2.0,
        maximum_interval_seconds=5.0,
        action="retry",
        title="A database transaction met another",
        user_message=LATER,
        runbook="Deadlock, serialization failure or lock: one of two gave way. A duplicate key is not retried.",
        next_step="If it repeats, take the locks in one order or shorten the transaction.",
    ),
    CodeSpec(
        code="AI_QUEUE_UNAVAILABLE",
        level=Level.L3,
        cause=Cause.INFRASTRUCTURE,
        retryable=True,
        action="retry",
        title="Redis or a message broker is not available",
        user_message=LATER,
        runbook="A queue or cache that the handler uses refused or lost the connection.",
        next_step="Check the broker, its memory and its credentials.",
    ),
    CodeSpec(
        code="AI_RESOURCE_EXHAUSTED",
        level=Level.L3,
        cause=Cause.INFRASTRUCTURE,
        retryable=True,
        initial_interval_seconds=5.0,
        backoff_coefficient=2.0,
        maximum_interval_seconds=60.0,
        action="retry",
        title="A worker's machine ran out of a resource",
        user_message=LATER,
        runbook="Disk, file descriptors, threads or memory of the worker's machine are used up.",
        next_step="Free the resource; a leak shows by growing until the restart.",
    ),
    CodeSpec(
        code="AI_WORKER_LOST",
        level=Level.L1,
        cause=Cause.INFRASTRUCTURE,
        retryable=True,
        action="retry",
        title="The worker process was lost",
        user_message=LATER,
        runbook="The process that ran the task was killed or vanished; memory is the usual reason.",
        next_step="If one task does it again and again, look at its input and at the memory of the workers.",
    ),
)

#: code -> its built-in spec.
CODES: dict[str, CodeSpec] = {spec.code: spec for spec in _CODES}
UNKNOWN = "AI_UNKNOWN_ERROR"
