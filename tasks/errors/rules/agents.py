"""Agents and their tools: loops, limits of steps, failing tools, invalid histories found before the call."""

from tasks.errors.rule import Rule, either

RULES = (
    Rule(
        code="AI_AGENT_LOOP",
        exception=either(
            r"\.(GraphRecursionError|LoopDetected\w*|MaxTurnsExceeded|UsageLimitExceeded|MaxIterations\w*",
            r"AgentMaxStepsError|MaxStepsExceeded\w*|AgentLoop\w*|ToolLoop\w*)$",
        ),
    ),
    Rule(
        code="AI_AGENT_LOOP",
        message=either(
            r"stopped due to (an? )?(max(imum)? (iterations?|steps?)|iteration limit|time limit)",
            r"recursion limit of \d+ reached|identical arguments",
            r"max(imum)? (number of )?(turns|iterations|steps|tool calls) .{0,30}(exceeded|reached)",
            r"reached (the )?max(imum)? (number of )?(turns|iterations|steps|tool calls)",
            r"exceed(ed)? the (request|tool_calls)_limit of|(same tool|tool) .{0,60}(repeated|in a row|times with)",
            r"loop detected",
        ),
    ),
    # Every tool call in a history needs its answer; libraries that check it say so before any request is made.
    Rule(
        code="AI_SESSION_CORRUPT",
        message=either(
            r"tool_calls that do not have a corresponding ToolMessage|INVALID_CHAT_HISTORY",
            r"cannot provide a new user prompt when the message history contains unprocessed tool calls",
        ),
    ),
    Rule(code="AI_OUTPUT_EMPTY", message=r"received empty model response|empty (model )?response (from|received)"),
    Rule(
        code="AI_OUTPUT_TRUNCATED",
        exception=r"\.(IncompleteToolCall|IncompleteOutputException|LengthFinishReasonError)$",
    ),
    Rule(
        code="AI_OUTPUT_TRUNCATED",
        message=r"model token limit \(.{1,30}\) exceeded|output is incomplete due to a max_tokens",
    ),
    Rule(
        code="AI_CONTENT_FILTERED",
        exception=r"\.(\w*GuardrailTripwireTriggered|ContentFilterError|ContentFilterFinishReasonError)$",
    ),
    Rule(
        code="AI_TOOL_FAILED",
        exception=either(
            r"\.(McpError|MCPError|ToolException|ToolError|ToolExecutionError|ToolRetryError|ToolInvocationError",
            r"ToolTimeoutError|ToolCallError|ToolFailed\w*|ToolNotFoundError|ModelRetry|CalledProcessError",
            r"TimeoutExpired|AgentToolExecutionError|AgentToolCallError)$",
        ),
    ),
    Rule(
        code="AI_TOOL_FAILED",
        message=either(
            r"^tool ['\"`][^'\"`]{1,80}['\"`] (exceeded max retries|failed|not found|timed out|raised)",
            r"unknown tool( name)?:|requested tool does not exist|error (calling|executing|running|invoking) tool",
            r"tool (execution|call|invocation) (failed|error)|\bMCP error -?\d+",
            r"attempted to call tool .{1,100} which was not in request\.tools|(no|not) such tool",
            r"is not a valid tool",
        ),
    ),
)
