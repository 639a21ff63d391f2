"""The last resort: the field, the bare status, the name of the class; then what is plainly a bug of ours."""

from tasks.errors.rule import Rule, either

RULES = (
    Rule(code="AI_PERMISSION_DENIED", http_status="403, 451"),
    Rule(code="AI_RATE_LIMITED", http_status="429"),
    Rule(code="AI_UPSTREAM_5XX", http_status="503", message=r"upstream connect error|upstream request"),
    Rule(code="AI_OVERLOADED", http_status="498, 503, 529"),
    Rule(code="AI_UPSTREAM_5XX", http_status="424, 425, 5xx"),
    Rule(code="AI_MODEL_NOT_FOUND", http_status="404, 410"),
    Rule(code="AI_INPUT_INVALID", http_status="4xx"),
    # No error of the server, though SDKs raise one class for all of them (InternalServerError for 600, 999).
    Rule(code="AI_UNKNOWN_ERROR", http_status="1xx, 3xx, 6xx, 7xx, 8xx, 9xx"),
    Rule(
        code="AI_RATE_LIMITED",
        exception=either(
            r"(^|\.)(RateLimitError|ModelRateLimitError|ThrottlingException|TooManyRequests\w*|ResourceExhausted",
            r"RateLimit\w*)$",
        ),
    ),
    Rule(code="AI_RATE_LIMITED", message=r"\bRESOURCE_EXHAUSTED\b|resource has been exhausted"),
    Rule(code="AI_PERMISSION_DENIED", exception=r"(^|\.)(PermissionDeniedError|PermissionDenied|Forbidden\w*)$"),
    Rule(code="AI_OVERLOADED", exception=r"(^|\.)(ServiceUnavailable\w*|ModelUnavailableError|OverloadedError)$"),
    Rule(
        code="AI_UPSTREAM_5XX",
        exception=either(
            r"(^|\.)(InternalServerError|BadGateway\w*|APIStatusError|ServerError|ModelErrorException",
            r"InternalServerException|ModelStreamErrorException|EventStreamError)$",
        ),
    ),
    Rule(
        code="AI_UPSTREAM_5XX",
        body=either(
            r"(^|\.)(code|type|status|error_type)=(server_error|internal_error|internal_server_error|api_error",
            r"INTERNAL|InternalError\w*|upstream_error|UNKNOWN)$",
        ),
    ),
    Rule(
        code="AI_UPSTREAM_5XX",
        message=either(
            r"internal (server )?error|server (had an|error)",
            r"error occurred (while|in|during) (processing|model serving|streaming)|bad gateway|service unavailable",
            r"upstream (error|connect error)|unexpected error during processing|provider returned error|内部错误",
            r"服务(异常|不可用)|系统(错误|异常)",
        ),
    ),
    Rule(code="AI_UPSTREAM_5XX", message=r"\bStatusCode\.(INTERNAL|UNKNOWN|ABORTED|DATA_LOSS)\b"),
    Rule(code="AI_MODEL_NOT_FOUND", exception=r"(^|\.)(NotFoundError|NotFound)$"),
    Rule(code="AI_MODEL_NOT_FOUND", message=r"\bStatusCode\.NOT_FOUND\b"),
    Rule(
        code="AI_INPUT_INVALID",
        exception=either(
            r"(^|\.)(BadRequestError|UnprocessableEntityError|InvalidArgument|InvalidRequestError",
            r"ModelRequestRejectedError|ParamValidationError|FailedPrecondition)$",
        ),
    ),
    # A bug does not mend itself.
    Rule(
        code="AI_UNKNOWN_ERROR",
        exception=r"\A(builtins\.RuntimeError|langgraph\.errors\.(InvalidUpdateError|EmptyInputError))$",
        message=either(
            r"event loop is closed|changed size during iteration|running event loop|no current event loop",
            r"already awaited|generator raised|can receive only one value|different (event )?loop|never awaited",
            r"cancel scope in a different task|received no input",
        ),
        retryable=False,
    ),
    Rule(
        code="AI_UNKNOWN_ERROR",
        exception=either(
            r"\A(builtins\.)?(KeyError|TypeError|AttributeError|NameError|UnboundLocalError|IndexError|LookupError",
            r"ValueError|AssertionError|ZeroDivisionError|OverflowError|ArithmeticError|NotImplementedError",
            r"ImportError|ModuleNotFoundError|SyntaxError|IndentationError|RecursionError|UnicodeError",
            r"UnicodeDecodeError|UnicodeEncodeError|FileNotFoundError|FileExistsError|PermissionError",
            r"IsADirectoryError|NotADirectoryError|StopIteration|StopAsyncIteration|BufferError|ReferenceError)$",
        ),
        retryable=False,
    ),
)
