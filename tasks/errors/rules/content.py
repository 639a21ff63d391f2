"""What a provider refuses for its content: filters, and conversations whose history breaks the provider's rules."""

from tasks.errors.rule import Rule, either

RULES = (
    # A medium that could not be fetched for inspection was not inspected.
    Rule(
        code="AI_INPUT_INVALID",
        message=r"unable to download the media|failed to (download|fetch) (the )?(image|media"
        r"|file|url)",
    ),
    # Recitation is a matter of sampling: another sample may pass.
    Rule(
        code="AI_CONTENT_FILTERED",
        message=either(
            r"finish_reason\]?(\([^)]*\))? is (4\b|RECITATION)",
            r"finish_?reason['\"]?[:=. ]+['\"]?(FinishReason\.)?RECITATION",
        ),
        retryable=True,
    ),
    Rule(
        code="AI_OUTPUT_TRUNCATED",
        message=either(
            r"finish_reason\]?(\([^)]*\))? is (2\b|MAX_TOKENS)|finish_?reason['\"]?[:=. ]+['\"]?length\b",
            r"finish_?reason['\"]?[:=. ]+['\"]?(FinishReason\.)?MAX_TOKENS",
        ),
    ),
    Rule(code="AI_OUTPUT_MALFORMED", message=r"finish_reason\]?(\([^)]*\))? is (10\b|MALFORMED_FUNCTION_CALL)"),
    Rule(
        code="AI_CONTENT_FILTERED",
        message=r"finish_reason\]?(\([^)]*\))? is (3|6|7|8|9|11|SAFETY|BLOCKLIST|PROHIBITED_CONTENT"
        r"|SPII)\b",
    ),
    Rule(
        code="AI_OUTPUT_EMPTY",
        message=r"requires the response to contain a valid `Part`|response\.(text|parts)` quick accessor",
    ),
    Rule(
        code="AI_OUTPUT_TRUNCATED",
        http_status="none, 2xx",
        body=r"(^|\.)(finish_reason|stop_reason|finishReason)=(length|max_tokens|MAX_TOKENS)$",
    ),
    Rule(
        code="AI_CONTENT_FILTERED",
        body=either(
            r"(^|\.)(finish_reason|stop_reason|finishReason|blockReason|block_reason)=(content_filter|SAFETY",
            r"BLOCKLIST|PROHIBITED_CONTENT|SPII|IMAGE_SAFETY|OTHER|sensitive|refusal|guardrail_intervened)$",
        ),
    ),
    Rule(
        code="AI_CONTENT_FILTERED",
        body=either(
            r"(^|\.)(code|type|status|reason|error_code|error_type|innererror\.code)=(content_filter\w*",
            r"content_policy_violation|moderation_blocked|ResponsibleAIPolicyViolation|invalid_prompt",
            r"DataInspectionFailed|data_inspection_failed|sensitive\w*|\w*SensitiveContentDetected\w*",
            r"content_moderation|safety\w*|prompt_blocked|ContentPolicyViolation\w*|risk_control|1301|1026|1027",
            r"10013|10014|336104|moderation_error|image_generation_user_error)$",
        ),
    ),
    Rule(
        code="AI_CONTENT_FILTERED",
        exception=r"\.(ContentPolicyViolationError|BlockedPromptException|StopCandidateException"
        r"|ContentFilter\w*)$",
    ),
    Rule(
        code="AI_CONTENT_FILTERED",
        message=either(
            r"content[ _-]?(management policy|filter(ed|ing)?\b|policy|polic(y|ies) violation)|safety system",
            r"responsible ai|content exists risk|considered high risk|flagged (as|for|by)|requires moderation",
            r"(was|were|been) (blocked|flagged|refused) (by|due to|because of|for) .{0,40}(safety|policy|filter",
            r"moderation|guardrail)",
            r"prohibited[_ ]content|PROHIBITED_CONTENT|inappropriate content|DataInspectionFailed",
            r"data_inspection_failed|(the )?prompt was blocked",
            r"violat\w+ (of )?(our|the|its) (usage|content|safety|use) polic|usage policies",
            r"guardrail (intervened|blocked)|blocked by (a |the )?guardrail|harmful content",
            r"sensitive (content|words?|information)|unsafe content|content.{0,20}moderation",
        ),
    ),
    Rule(
        code="AI_CONTENT_FILTERED",
        message=r"敏感(内容|词|信息)|不安全|违规|内容(安全|审核|过滤)|涉(黄|政|暴)|风控|违反.{0,12}(规定|政策|法律)",
    ),
    Rule(
        code="AI_SESSION_CORRUPT",
        body=either(
            r"(^|\.)(code|type)=(previous_response_not_found|conversation_not_found|thread_not_found",
            r"invalid_request_message_order|invalid_encrypted_content|3230)$",
        ),
    ),
    Rule(
        code="AI_SESSION_CORRUPT",
        http_status="none, 2xx, 400, 404, 409, 422, 500",
        message=either(
            r"without its required following item|provided without its required|must be followed by tool messages",
            r"did not have response messages|`?tool_use`? ids were found without|unexpected `?tool_use_id`? found",
            r"each `?tool_(use|result)`? block must have|tool_result.{0,80}(corresponding|matching) `?tool_use",
            r"role ['\"`]?tool['\"`]? must be a response to a prece\w+|no tool (output|call) found for",
            r"no function call found for|tool(Result|Use) blocks? at messages|toolResult",
            r"number of function (calls|response)|function response parts? is equal",
            r"function call turn comes immediately after|function response turn|missing a `?thought_signature",
            r"thought_?signature|expected last role|last message (must|should|cannot|role)",
            r"unexpected role .{1,40} after role|roles must alternate|must (have )?alternat|alternate between",
            r"assistant messages at the end|message in the final position",
            r"successive (user|assistant)|consecutive (user|assistant)",
            r"(conversation|first message|messages?) must (start|begin|end) with",
            r"`?thinking`? blocks? .{0,80}(cannot be modified|must|expected)|when `?thinking`? is enabled",
            r"invalid `?signature`? in `?thinking|reasoning_content.{0,60}must be passed back",
            r"expected `?(redacted_)?thinking`?|previous response .{0,80}not found|item with id .{1,80} not found",
            r"duplicate (item|tool_call|tool_use)|`?tool_use`? ids must be unique",
            r"tool_call_id.{0,40}(not found|is not found|missing|mismatch)|final assistant content cannot end with",
            r"all messages must have non-empty content|conversation .{1,80}(not found|is corrupt)",
            r"encrypted content .{0,60}could not be",
        ),
    ),
    Rule(
        code="AI_SESSION_CORRUPT",
        message=r"messages? .{0,12}(顺序|角色)|工具(调用|消息).{0,20}(缺少|不匹配|对应)|tool_calls.{0,20}(必须"
        r"|之后)",
    ),
)
