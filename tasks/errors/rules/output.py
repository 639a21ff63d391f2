"""Answers that are of no use: cut, empty, no JSON, against their schema. Mostly told by the class of the parser."""

from tasks.errors.rule import Rule, either

#: Models of what we take in; anything else that pydantic refuses is what the model gave out.
_INPUT_MODEL = (
    r"validation errors? for \w*(Request|Input|Payload|Params|Parameters|Args|Arguments|Job|Command|Query|Body|Form"
    r"|Event|Task)\w*\b"
)
_ENVELOPE = r"validation errors? for ((Chat)?Completion|ModelResponse|GenerateContentResponse|Message|Response)\b"
_PARSERS = (
    r"(^|\.)(JSONDecodeError|OutputParserException|OutputParserError|ScannerError|ParseError|ValidationError"
    r"|InstructorRetryException|UnexpectedModelBehavior"
    r"|ResponseParseError|APIResponseValidationError|JSONSchemaValidationError"
    r"|ModelBehaviorError|ResponseValidationError"
    r"|ParserError|InvalidJSONError|AgentParsingError|DecodeError|SchemaError"
    r"|JSONDecodingError|OutputValidationError)$"
)

RULES = (
    # A server error in the envelope, which the SDK then could not parse.
    Rule(code="AI_UPSTREAM_5XX", exception=_PARSERS, http_status="500, 502, 504", message=_ENVELOPE),
    Rule(code="AI_OVERLOADED", exception=_PARSERS, http_status="503, 529", message=_ENVELOPE),
    Rule(code="AI_RATE_LIMITED", exception=_PARSERS, http_status="429", message=_ENVELOPE),
    Rule(
        code="AI_CONFIG_INVALID",
        exception=r"(^|\.)ValidationError$",
        message=r"validation errors? for \w*(Settings|Config)\w*\b",
    ),
    Rule(code="AI_INPUT_INVALID", exception=r"(^|\.)ValidationError$", message=_INPUT_MODEL),
    Rule(code="AI_INPUT_INVALID", exception=r"\.(RequestValidationError|UnprocessableEntity)$"),
    Rule(code="AI_INPUT_INVALID", exception=r"^(django|marshmallow|rest_framework|wtforms)\b.*\.ValidationError$"),
    Rule(
        code="AI_OUTPUT_EMPTY",
        exception=_PARSERS,
        message=either(
            r"EOF while parsing a value at line 1 column 0|input_value=''",
            r"no (content|choices|candidates) (in|returned)|empty response",
        ),
    ),
    Rule(
        code="AI_OUTPUT_EMPTY",
        message=either(
            r"JSON object must be str, bytes or bytearray, not NoneType",
            r"(response|answer|completion|model|output) (was|is) empty",
            r"returned (no|an empty) (content|text|message|output|answer|response|choices|candidates)",
            r"(no|empty) (content|text|message|output|candidates|choices) (was |were )?(returned|received",
            r"generated|in (the )?response)",
            r"model (returned|output) (an empty|no|nothing)|empty (completion|answer|content) ",
        ),
    ),
    # The text ends inside a value: cut, and cut again at the same place.
    Rule(
        code="AI_OUTPUT_TRUNCATED",
        exception=_PARSERS,
        message=r"EOF while parsing|unterminated string|unexpected end of (json|input)",
    ),
    Rule(
        code="AI_OUTPUT_TRUNCATED",
        message=r"length limit was reached|max(imum)?[_ ](output[_ ])?tokens? (limit )?(was )?reached",
    ),
    Rule(
        code="AI_TOOL_FAILED", exception=r"\.UnexpectedModelBehavior$", message=r"\btool\b.{0,80}exceeded max retries"
    ),
    Rule(code="AI_CONTENT_FILTERED", exception=r"\.UnexpectedModelBehavior$", message=r"content filter|refus(ed|al)"),
    # A web page where the API should be: the address is wrong, or something stands before it.
    Rule(code="AI_CONFIG_INVALID", http_status="200", body=r"^html="),
    Rule(code="AI_CONFIG_INVALID", message=r"unexpected (mimetype|content.?type):? '?text/html"),
    Rule(code="AI_CONFIG_INVALID", exception=r"ContentTypeError$", http_status="200"),
    # Only where no status says more: a parser over a refused call is read by what refused it.
    Rule(code="AI_OUTPUT_MALFORMED", exception=_PARSERS, http_status="none, 2xx"),
    Rule(
        code="AI_OUTPUT_MALFORMED",
        body=r"(^|\.)(code|type)=(tool_use_failed|json_validate_failed|output_parse_failed"
        r"|model_output_error)$",
    ),
    Rule(
        code="AI_OUTPUT_MALFORMED",
        message=either(
            r"could not parse (llm )?output|could not parse tool input|invalid json output",
            r"failed to (validate|generate) json|tool call validation failed|error parsing tool call",
            r"failed to parse (tool call|input at pos|function call)",
            r"failed to call a function|model produced invalid content",
            r"malformed_?function_?call|does not match (the )?(expected )?(json )?schema|not valid json\b",
        ),
    ),
    # The envelope is missing: our code reached into an answer that is not there.
    Rule(
        code="AI_OUTPUT_MALFORMED",
        exception=r"^builtins\.(KeyError|AttributeError|IndexError|TypeError)$",
        message=either(
            r"^['\"]?(choices|candidates|content|output|message|usage|completion)['\"]?$",
            r"has no attribute ['\"](choices|candidates|content|output_text)['\"]",
        ),
    ),
    Rule(
        code="AI_OUTPUT_MALFORMED",
        exception=r"^builtins\.(KeyError|AttributeError|IndexError|TypeError)$",
        source=r"(\.|\[['\"])(choices|candidates|output_text)\b|\.content\[0\]|\.message\.content",
    ),
    Rule(
        code="AI_OUTPUT_MALFORMED",
        exception=r"^(tasks\.errors\.faults\.ProviderError|openai\.\w+)$",
        http_status="200",
        message=r"no usable body|not json|expecting value|could not (be )?(decoded|parsed)",
    ),
)
