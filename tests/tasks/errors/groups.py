# ruff: noqa: E501 - one failure a line, as long as providers word them
"""Groups of failures: members are one fault, near misses are others. Ids, hosts and names are made up."""

from __future__ import annotations

from typing import Any

from tasks.errors import Failure

Group = tuple[list[Failure], list[Failure]]


def failed(message: str, exception: str | None = None, **more: Any) -> Failure:
    return Failure(exception=exception, message=message, **more)


def sdk(
    status: int, text: str, code: str | None = None, kind: str | None = None, name: str = "RateLimitError"
) -> Failure:
    error = {"message": text, "type": kind, "param": None, "code": code}
    return failed(f"Error code: {status} - {{'error': {error!r}}}", f"openai.{name}", http_status=status)


TPM = "Rate limit reached for gpt-4o in organization org-%s on tokens per min (TPM): Limit %s, Used %s, Requested %s. Please try again in %s. Visit https://platform.openai.com/account/rate-limits to learn more."
GROUPS: dict[str, Group] = {}
GROUPS["tpm"] = (
    [
        sdk(429, TPM % ("Qv3TnXy8LmPzRk2WbHs7JdUc", "30000", "29871", "512", "766ms"), "rate_limit_exceeded", "tokens"),
        sdk(
            429,
            TPM % ("Ab3TnXy8LmPzRk2WbHs7JdUx", "450000", "449000", "5120", "6.532s"),
            "rate_limit_exceeded",
            "tokens",
        ),
        sdk(429, TPM % ("Yz9RkWbHs7JdUcQv3TnXy8Lm", "1000", "999", "1", "1m26.4s"), "rate_limit_exceeded", "tokens"),
    ],
    [
        sdk(
            429,
            TPM.replace("tokens per min (TPM)", "requests per min (RPM)")
            % ("Qv3TnXy8LmPzRk2WbHs7JdUc", "3", "3", "1", "20s"),
            "rate_limit_exceeded",
            "requests",
        ),
        sdk(
            429,
            "Request too large for gpt-4o in organization org-Hn2BvCx7QwErTy5UiOpAsDfG on tokens per min (TPM): Limit 30000, Requested 31538.",
            "rate_limit_exceeded",
            "tokens",
        ),
    ],
)
GROUPS["key"] = (
    [
        sdk(
            401,
            "Incorrect API key provided: sk-proj-********************************8fQ2. You can find your API key at https://platform.openai.com/account/api-keys.",
            "invalid_api_key",
            "invalid_request_error",
            "AuthenticationError",
        ),
        sdk(
            401,
            "Incorrect API key provided: sk-T3kQ9vXz7LmWbT2RnYpHs5JcUeGfA8oKiNw4R6yB1d0Z. You can find your API key at https://platform.openai.com/account/api-keys.",
            "invalid_api_key",
            "invalid_request_error",
            "AuthenticationError",
        ),
        sdk(
            401,
            "Incorrect API key provided: abc. You can find your API key at https://platform.openai.com/account/api-keys.",
            "invalid_api_key",
            "invalid_request_error",
            "AuthenticationError",
        ),
    ],
    [
        sdk(
            401,
            "You must be a member of an organization to use the API.",
            None,
            "invalid_request_error",
            "AuthenticationError",
        )
    ],
)
GROUPS["server"] = (
    [
        sdk(
            500,
            "The server had an error while processing your request. Sorry about that! (Please include the request ID 3e7a10c59bd24f6688f1c2a4d0b9e751 in your message.)",
            None,
            "server_error",
            "InternalServerError",
        ),
        sdk(
            500,
            "The server had an error while processing your request. Sorry about that! (Please include the request ID req_8e1d3f5a7b9c0d2e4f6a8b0c1d3e5f7a in your message.)",
            None,
            "server_error",
            "InternalServerError",
        ),
    ],
    [],
)
GROUPS["toolcall"] = (
    [
        sdk(
            400,
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_Yt5GhJk2LmNbVcXz9QwErTyU",
            None,
            "invalid_request_error",
            "BadRequestError",
        ),
        sdk(
            400,
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_A1, call_B2",
            None,
            "invalid_request_error",
            "BadRequestError",
        ),
        sdk(
            400,
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: 0f8c1d2e-aaaa-bbbb-cccc-1234567890ab",
            None,
            "invalid_request_error",
            "BadRequestError",
        ),
    ],
    [],
)
GROUPS["rs"] = (
    [
        sdk(
            400,
            "Item 'rs_4b7d0e2f9c6a8153de70b4c2f8a19635e0' of type 'reasoning' was provided without its required following item.",
            None,
            "invalid_request_error",
            "BadRequestError",
        ),
        sdk(
            400,
            "Item 'rs_68af11d0e2f9c6a8153de70b4c2f8a19635e0' of type 'reasoning' was provided without its required following item.",
            None,
            "invalid_request_error",
            "BadRequestError",
        ),
    ],
    [
        sdk(
            400,
            "Item 'msg_4b7d0e2f9c6a8153de70b4c2f8a19635e0' of type 'message' was provided without its required 'reasoning' item: 'rs_1'.",
            None,
            "invalid_request_error",
            "BadRequestError",
        )
    ],
)
GROUPS["model404"] = (
    [
        sdk(
            404,
            "The model `gpt-9` does not exist or you do not have access to it.",
            "model_not_found",
            "invalid_request_error",
            "NotFoundError",
        )
    ],
    [
        sdk(
            404,
            "The model `gpt-5` does not exist or you do not have access to it.",
            "model_not_found",
            "invalid_request_error",
            "NotFoundError",
        ),
        sdk(
            404,
            "The model `claude-x` does not exist or you do not have access to it.",
            "model_not_found",
            "invalid_request_error",
            "NotFoundError",
        ),
    ],
)
GROUPS["azure"] = (
    [
        sdk(
            429,
            "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2023-05-15 have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 26 seconds. Please contact Azure",
            "429",
        ),
        sdk(
            429,
            "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-21 have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 1 second. Please contact Azure",
            "429",
        ),
    ],
    [
        sdk(
            429,
            "Requests to the Embeddings_Create Operation under Azure OpenAI API version 2024-10-21 have exceeded call rate limit of your current OpenAI S0 pricing tier. Please retry after 1 second. Please contact Azure",
            "429",
        )
    ],
)
GROUPS["prompt"] = (
    [
        failed(
            "Error code: 400 - {'type': 'error', 'error': {'type': 'invalid_request_error', 'message': 'prompt is too long: 208310 tokens > 200000 maximum'}, 'request_id': 'req_011CUB3YVIXlHPoRydLdCqgG'}",
            "anthropic.BadRequestError",
            http_status=400,
        ),
        failed(
            "Error code: 400 - {'type': 'error', 'error': {'type': 'invalid_request_error', 'message': 'prompt is too long: 1,203,310 tokens > 1,000,000 maximum'}}",
            "anthropic.BadRequestError",
            http_status=400,
        ),
    ],
    [
        failed(
            "Error code: 400 - {'type': 'error', 'error': {'type': 'invalid_request_error', 'message': 'input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or `max_tokens` and try again'}}",
            "anthropic.BadRequestError",
            http_status=400,
        )
    ],
)
GROUPS["gemini"] = (
    [
        failed(
            "429 RESOURCE_EXHAUSTED. {'error': {'code': 429, 'message': 'You exceeded your current quota. \\n* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_paid_tier_input_token_count, limit: 4000000\\nPlease retry in 47.12345s.', 'status': 'RESOURCE_EXHAUSTED', 'details': [{'@type': 'type.googleapis.com/google.rpc.RetryInfo', 'retryDelay': '47s'}]}}",
            "google.genai.errors.ClientError",
            http_status=429,
        ),
        failed(
            "429 RESOURCE_EXHAUSTED. {'error': {'code': 429, 'message': 'You exceeded your current quota. \\n* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_paid_tier_input_token_count, limit: 1000000\\nPlease retry in 3.2s.', 'status': 'RESOURCE_EXHAUSTED', 'details': [{'@type': 'type.googleapis.com/google.rpc.RetryInfo', 'retryDelay': '3s'}]}}",
            "google.genai.errors.ClientError",
            http_status=429,
        ),
    ],
    [
        failed(
            "429 RESOURCE_EXHAUSTED. {'error': {'code': 429, 'message': 'You exceeded your current quota. \\n* Quota exceeded for metric: generativelanguage.googleapis.com/generate_requests_per_model_per_day, limit: 250\\nPlease retry in 3.2s.', 'status': 'RESOURCE_EXHAUSTED'}}",
            "google.genai.errors.ClientError",
            http_status=429,
        )
    ],
)
GROUPS["vertex"] = (
    [
        failed(
            "404 NOT_FOUND. {'error': {'code': 404, 'message': 'Publisher Model `projects/418820397715/locations/us-central1/publishers/google/models/gemini-3-pro` was not found', 'status': 'NOT_FOUND'}}",
            "google.genai.errors.ClientError",
            http_status=404,
        ),
        failed(
            "404 NOT_FOUND. {'error': {'code': 404, 'message': 'Publisher Model `projects/my-proj-77/locations/europe-west4/publishers/google/models/gemini-3-pro` was not found', 'status': 'NOT_FOUND'}}",
            "google.genai.errors.ClientError",
            http_status=404,
        ),
    ],
    [],
)
GROUPS["moderation"] = (
    [
        failed(
            "Error code: 403 - {'error': {'message': 'google/gemini-2.5-pro requires moderation on OpenInference. Your input was flagged for \"violence/graphic\". No credits were charged.', 'code': 403, 'metadata': {'reasons': ['violence/graphic'], 'flagged_input': '…the wound in the left …', 'provider_name': 'OpenInference'}}}",
            "openai.PermissionDeniedError",
            http_status=403,
        ),
        failed(
            "Error code: 403 - {'error': {'message': 'google/gemini-2.5-pro requires moderation on OpenInference. Your input was flagged for \"violence/graphic\". No credits were charged.', 'code': 403, 'metadata': {'reasons': ['violence/graphic'], 'flagged_input': 'other text 55', 'provider_name': 'OpenInference'}}}",
            "openai.PermissionDeniedError",
            http_status=403,
        ),
    ],
    [
        failed(
            "Error code: 403 - {'error': {'message': 'google/gemini-2.5-pro requires moderation on OpenInference. Your input was flagged for \"sexual\". No credits were charged.', 'code': 403, 'metadata': {'reasons': ['sexual'], 'flagged_input': 'other text 55'}}}",
            "openai.PermissionDeniedError",
            http_status=403,
        )
    ],
)
GROUPS["hf"] = (
    [
        failed(
            "503 Server Error: Service Unavailable for url: https://router.huggingface.co/hf-inference/models/mistralai/Mistral-7B-Instruct-v0.3 (Request ID: Root=1-68f3a9c1-2d7b4e0f5a6c8d9e1b3f5a7c;e4f0c2a9-6b1d-4e57-9a83-d27c51be0f64)\n\nModel mistralai/Mistral-7B-Instruct-v0.3 is currently loading",
            "huggingface_hub.errors.HfHubHTTPError",
            http_status=503,
            body={"error": "Model mistralai/Mistral-7B-Instruct-v0.3 is currently loading", "estimated_time": 20.0},
        ),
        failed(
            "503 Server Error: Service Unavailable for url: https://router.huggingface.co/hf-inference/models/mistralai/Mistral-7B-Instruct-v0.3 (Request ID: Root=1-77f3a9c1-aaaa4e0f5a6c8d9e1b3f5a7c;f4f0c2a9-6b1d-4e57-9a83-d27c51be0f64)\n\nModel mistralai/Mistral-7B-Instruct-v0.3 is currently loading",
            "huggingface_hub.errors.HfHubHTTPError",
            http_status=503,
            body={"error": "Model mistralai/Mistral-7B-Instruct-v0.3 is currently loading", "estimated_time": 127.32},
        ),
    ],
    [],
)
GROUPS["unique"] = (
    [
        failed(
            'duplicate key value violates unique constraint "job_attempts_pkey"\nDETAIL:  Key (job_id, attempt)=(b2f7d1c4-8e3a-4f60-9d15-7c0e2a6b8f93, 2) already exists.',
            "psycopg.errors.UniqueViolation",
        ),
        failed(
            'duplicate key value violates unique constraint "job_attempts_pkey"\nDETAIL:  Key (job_id, attempt)=(0d4c8a17-5e2b-49f3-b6d0-1a7e9c3f5b82, 11) already exists.',
            "psycopg.errors.UniqueViolation",
        ),
    ],
    [
        failed(
            'duplicate key value violates unique constraint "users_email_key"\nDETAIL:  Key (email)=(a@b.example) already exists.',
            "psycopg.errors.UniqueViolation",
        )
    ],
)
GROUPS["worker"] = (
    [
        failed("Worker exited prematurely: signal 9 (SIGKILL) Job: 10.", "billiard.exceptions.WorkerLostError"),
        failed("Worker exited prematurely: signal 9 (SIGKILL) Job: 4711.", "billiard.exceptions.WorkerLostError"),
    ],
    [
        failed("Worker exited prematurely: signal 15 (SIGTERM) Job: 10.", "billiard.exceptions.WorkerLostError"),
        failed("Worker exited prematurely: signal 11 (SIGSEGV) Job: 10.", "billiard.exceptions.WorkerLostError"),
        failed("Worker exited prematurely: exitcode 155 Job: 0.", "billiard.exceptions.WorkerLostError"),
    ],
)
GROUPS["empty"] = (
    [failed("", "httpx.ReadTimeout"), failed(" ", "httpx.ReadTimeout")],
    [failed("", "httpx.PoolTimeout"), failed("", "httpx.ConnectTimeout"), failed("", "builtins.TimeoutError")],
)
TRACEBACK = 'Traceback (most recent call last):\n  File "%s", line %d, in %s\n    assert x\nAssertionError'
GROUPS["assert"] = (
    [
        failed("", "builtins.AssertionError", traceback=TRACEBACK % ("/srv/a-7f9c4d8b6/app/jobs/enrich.py", 41, "run")),
        failed("", "builtins.AssertionError", traceback=TRACEBACK % ("/home/ci/app/jobs/enrich.py", 55, "run")),
    ],
    [
        failed("", "builtins.AssertionError", traceback=TRACEBACK % ("/srv/app/jobs/other.py", 41, "run")),
        failed("", "builtins.AssertionError", traceback=TRACEBACK % ("/srv/app/jobs/enrich.py", 41, "load")),
    ],
)
GROUPS["libframe"] = (
    [
        failed(
            "'NoneType' object has no attribute 'x'",
            "builtins.AttributeError",
            traceback='Traceback (most recent call last):\n  File "/srv/app/a.py", line 4, in run\n    lib.go()\n  File "/usr/lib/python3.11/site-packages/lib/core.py", line 99, in go\n    y.x\nAttributeError',
        ),
        failed(
            "'NoneType' object has no attribute 'x'",
            "builtins.AttributeError",
            traceback='Traceback (most recent call last):\n  File "/srv/app/a.py", line 5, in run\n    lib.go()\n  File "/opt/venv/lib/python3.12/site-packages/lib/core.py", line 120, in _go2\n    y.x\nAttributeError',
        ),
    ],
    [],
)
GROUPS["keyerr"] = ([failed("'customer_id'", "builtins.KeyError")], [failed("'order_id'", "builtins.KeyError")])
GROUPS["objaddr"] = (
    [
        failed("<Foo object at 0x7f3a1c0b5d90> is not ready", "builtins.RuntimeError"),
        failed("<Foo object at 0x7f00dead0010> is not ready", "builtins.RuntimeError"),
    ],
    [failed("<Bar object at 0x7f00dead0010> is not ready", "builtins.RuntimeError")],
)
GROUPS["subproc"] = (
    [
        failed(
            "Command '['/usr/bin/pdftotext', '-layout', '/tmp/job-8f21c7/upload_20261120.pdf', '-']' timed out after 120 seconds",
            "subprocess.TimeoutExpired",
        ),
        failed(
            "Command '['/usr/bin/pdftotext', '-layout', '/tmp/job-00d4e1/scan.pdf', '-']' timed out after 60 seconds",
            "subprocess.TimeoutExpired",
        ),
    ],
    [
        failed(
            "Command '['/usr/bin/tesseract', '/tmp/job-00d4e1/scan.pdf', '-']' timed out after 60 seconds",
            "subprocess.TimeoutExpired",
        )
    ],
)
GROUPS["loop"] = (
    [
        failed(
            "Agent called tool 'search_web' 6 times with identical arguments {'q': 'Lieferstatus 4711-22'}; aborting",
            "app.agent.LoopDetected",
        ),
        failed(
            "Agent called tool 'search_web' 8 times with identical arguments {'q': 'x'}; aborting",
            "app.agent.LoopDetected",
        ),
    ],
    [
        failed(
            "Agent called tool 'fetch_page' 6 times with identical arguments {'url': 'x'}; aborting",
            "app.agent.LoopDetected",
        )
    ],
)
GROUPS["mcp"] = (
    [
        failed(
            "MCP error -32603: MCP error -32603: Error calling tool zhi: MCP error -32001: Request timed out",
            "mcp.shared.exceptions.McpError",
        )
    ],
    [
        failed("MCP error -32602: Invalid params", "mcp.shared.exceptions.McpError"),
        failed(
            "MCP error -32603: MCP error -32603: Error calling tool zhi: MCP error -32000: Connection closed",
            "mcp.shared.exceptions.McpError",
        ),
    ],
)
GROUPS["pg"] = (
    [
        failed(
            'connection failed: connection to server at "127.0.0.1", port 5432 failed: FATAL:  sorry, too many clients already',
            "psycopg.OperationalError",
        ),
        failed(
            'connection failed: connection to server at "db-1.acme.example" (203.0.113.9), port 6432 failed: FATAL:  sorry, too many clients already',
            "psycopg.OperationalError",
        ),
        failed(
            'connection failed: connection to server at "::1", port 5432 failed: FATAL:  sorry, too many clients already',
            "psycopg.OperationalError",
        ),
    ],
    [
        failed(
            'connection failed: connection to server at "127.0.0.1", port 5432 failed: FATAL:  password authentication failed for user "jobs_app"',
            "psycopg.OperationalError",
        ),
        failed(
            'connection failed: connection to server at "127.0.0.1", port 5432 failed: Connection refused',
            "psycopg.OperationalError",
        ),
    ],
)
GROUPS["requests"] = (
    [
        failed(
            "HTTPSConnectionPool(host='llm-gw-2.prod.acme.example', port=8443): Max retries exceeded with url: /v1/chat/completions (Caused by NewConnectionError(\"HTTPSConnection(host='llm-gw-2.prod.acme.example', port=8443): Failed to establish a new connection: [Errno 111] Connection refused\"))",
            "requests.exceptions.ConnectionError",
        ),
        failed(
            "HTTPSConnectionPool(host='10.2.3.4', port=443): Max retries exceeded with url: /v1/chat/completions (Caused by NewConnectionError('<urllib3.connection.HTTPSConnection object at 0x7f3a1c0b5d90>: Failed to establish a new connection: [Errno 111] Connection refused'))",
            "requests.exceptions.ConnectionError",
        ),
    ],
    [
        failed(
            "HTTPSConnectionPool(host='llm-gw.acme.example', port=443): Max retries exceeded with url: /v1/chat/completions (Caused by NameResolutionError(\"HTTPSConnection(host='llm-gw.acme.example', port=443): Failed to resolve 'llm-gw.acme.example' ([Errno -2] Name or service not known)\"))",
            "requests.exceptions.ConnectionError",
        )
    ],
)
GROUPS["chain"] = (
    [
        failed(
            "Connection error.",
            "openai.APIConnectionError",
            cause_chain=("httpx2.ConnectError: [Errno 111] Connection refused",),
        ),
        failed(
            "Connection error.",
            "openai.APIConnectionError",
            cause_chain=("httpx.ConnectError: [Errno 111] Connection refused",),
        ),
    ],
    [
        failed(
            "Connection error.",
            "openai.APIConnectionError",
            cause_chain=("httpx2.ConnectError: [Errno -2] Name or service not known",),
        ),
        failed(
            "Connection error.",
            "openai.APIConnectionError",
            cause_chain=("httpx2.RemoteProtocolError: Server disconnected without sending a response.",),
        ),
    ],
)
GROUPS["image"] = (
    [
        failed(
            "Error code: 400 - {'type': 'error', 'error': {'type': 'invalid_request_error', 'message': 'messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6710432 bytes > 5242880 bytes'}}",
            "anthropic.BadRequestError",
            http_status=400,
        ),
        failed(
            "Error code: 400 - {'type': 'error', 'error': {'type': 'invalid_request_error', 'message': 'messages.14.content.0.image.source.base64: image exceeds 5 MB maximum: 9710432 bytes > 5242880 bytes'}}",
            "anthropic.BadRequestError",
            http_status=400,
        ),
    ],
    [],
)
GROUPS["jsonout"] = (
    [
        failed("Invalid json output: Here is the JSON", "langchain_core.exceptions.OutputParserException"),
        failed('Invalid json output: {\n "a": 1\n', "langchain_core.exceptions.OutputParserException"),
    ],
    [failed("Could not parse LLM output: `x`", "langchain_core.exceptions.OutputParserException")],
)
GROUPS["cn"] = (
    [
        failed(
            "Error code: 429 - {'error': {'code': '1305', 'message': '当前API请求过多，请稍后重试'}, 'request_id': '20261120091441a7c3f1d8'}",
            "openai.RateLimitError",
            http_status=429,
        ),
        failed(
            "Error code: 429 - {'error': {'code': '1305', 'message': '当前API请求过多，请稍后重试'}, 'request_id': '20261121170212bb08e4f5'}",
            "openai.RateLimitError",
            http_status=429,
        ),
    ],
    [
        failed(
            "Error code: 429 - {'error': {'code': '1302', 'message': '您当前使用该API的并发数过高'}, 'request_id': '20261121170212bb08e4f5'}",
            "openai.RateLimitError",
            http_status=429,
        )
    ],
)
GROUPS["litellm"] = (
    [
        failed(
            'litellm.AuthenticationError: AuthenticationError: OpenrouterException - {"error":{"message":"No auth credentials found","code":401}} api_key=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',
            "litellm.AuthenticationError",
            http_status=401,
        ),
        failed(
            'litellm.AuthenticationError: AuthenticationError: OpenrouterException - {"error":{"message":"No auth credentials found","code":401}} api_key=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',
            "litellm.AuthenticationError",
            http_status=401,
        ),
    ],
    [],
)
GROUPS["nccl"] = (
    [
        failed(
            "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600060 milliseconds before timing out.",
            "x.Y",
        )
    ],
    [],
)
GROUPS["signal"] = (
    [
        failed(
            "llama runner process has terminated: signal: aborted (core dumped)",
            "ollama._types.ResponseError",
            http_status=500,
        )
    ],
    [
        failed("llama runner process has terminated: exit status 2", "ollama._types.ResponseError", http_status=500),
        failed("llama runner process has terminated: signal: killed", "ollama._types.ResponseError", http_status=500),
    ],
)
GROUPS["sqlstate"] = (
    [failed("ERROR: 40001: could not serialize access", "x.Y")],
    [
        failed("ERROR: 40P01: could not serialize access", "x.Y"),
        failed("ERROR: 55P03: could not serialize access", "x.Y"),
    ],
)
GROUPS["tool"] = (
    [
        failed(
            "Tool 'lookup_invoice' exceeded max retries count of 1. Consider raising the retry limit for this tool.",
            "pydantic_ai.exceptions.UnexpectedModelBehavior",
        ),
        failed(
            "Tool 'lookup_invoice' exceeded max retries count of 3. Consider raising the retry limit for this tool.",
            "pydantic_ai.exceptions.UnexpectedModelBehavior",
        ),
    ],
    [
        failed(
            "Tool 'search' exceeded max retries count of 1. Consider raising the retry limit for this tool.",
            "pydantic_ai.exceptions.UnexpectedModelBehavior",
        )
    ],
)
GROUPS["unknown tool"] = (
    [
        failed(
            "Unknown tool name: 'search_web_v2'. Available tools: 'search_web', 'fetch_page'",
            "pydantic_ai.exceptions.ToolRetryError",
        )
    ],
    [
        failed(
            "Unknown tool name: 'fetch'. Available tools: 'search_web', 'fetch_page'",
            "pydantic_ai.exceptions.ToolRetryError",
        )
    ],
)
GROUPS["budget"] = (
    [
        failed("Key=sk-...x9Qz over max_parallel_requests limit of 5", "a.B"),
        failed("Key=sk-...a1Bz over max_parallel_requests limit of 10", "a.B"),
    ],
    [],
)
GROUPS["s3"] = (
    [
        failed("Unable to download https://acmestore.blob.core.windows.net/in/a.pdf?sv=2024&sig=abcdefghi", "a.B"),
        failed("Unable to download https://other.blob.core.windows.net/in/a.pdf?sv=2025&sig=zzzzzzzzz", "a.B"),
    ],
    [],
)
GROUPS["litellm tb"] = (
    [
        failed(
            'litellm.InternalServerError: InternalServerError: OpenAIException - Connection error.. Received Model Group=gpt-4o-prod\nAvailable Model Group Fallbacks=None\nTraceback (most recent call last):\n  File "/usr/lib/python3.13/site-packages/litellm/x.py", line 823, in acompletion\n    a()\nopenai.APIConnectionError: Connection error.',
            "litellm.InternalServerError",
            http_status=500,
        ),
        failed(
            'litellm.InternalServerError: InternalServerError: OpenAIException - Connection error.. Received Model Group=gpt-4o-prod\nAvailable Model Group Fallbacks=None\nTraceback (most recent call last):\n  File "/opt/conda/lib/python3.11/site-packages/litellm/x.py", line 700, in acompletion\n    a(\n      b)\nopenai.APIConnectionError: Connection error.',
            "litellm.InternalServerError",
            http_status=500,
        ),
    ],
    [],
)
