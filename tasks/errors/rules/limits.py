"""Limits of the provider: what no waiting lifts, what is used up, what only needs time, what is too long.

Providers use one word for several of these, so the sentence decides before the field, the field before the status.
"""

from tasks.errors.rule import Rule, either

_NOT_SERVER = "none, 2xx, 400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 498, 500, 502, 503, 529"

RULES = (
    # Worded as a size, but meant is the hour.
    Rule(code="AI_OVERLOADED", message=r"peak load|experiencing high demand"),
    # Larger than a limit per minute or per request: the same request can never pass.
    Rule(code="AI_INPUT_TOO_LARGE", http_status="413, 414, 431"),
    Rule(
        code="AI_INPUT_TOO_LARGE",
        message=either(
            r"request too large|request[_ ]?(entity )?(is )?too[_ ]large|request_too_large|payload (is )?too large",
            r"payload size exceeds|request exceeds the maximum (size|allowed)|string too long",
            r"exceeds? \d+ ?[KMG]B maximum|image (exceeds|is too large|dimensions? exceed)",
            r"dimensions? (exceed|at most)",
            r"(file|image|document|audio|body|request body|attachment) (size )?(is )?(too large|exceeds)",
            r"maximum of \d+ (pdf )?pages|too many (images|pages|files|attachments)",
            r"received message larger than max|too large to process|maximum (usage|request) size allowed",
            r"must be (less|smaller) than \d+ ?[KMG]?B\b|(超过|超出).{0,10}(大小|体积)",
            r"文件过大|图片过大|请求体过大|array too long",
            r"maximum allowed size",
        ),
    ),
    Rule(
        code="AI_INPUT_TOO_LARGE",
        body=either(
            r"(^|\.)(code|type)=(string_above_max_length|array_above_max_length|request_too_large|image_too_large",
            r"payload_too_large)$",
        ),
    ),
    # The context window; max_tokens counts against it with some.
    Rule(
        code="AI_CONTEXT_TRUNCATED",
        body=either(
            r"(^|\.)(code|type)=(context_length_exceeded|exceed_context_size_error|context_window_exceeded",
            r"model_context_window_exceeded|1261|1039)$",
        ),
    ),
    Rule(code="AI_CONTEXT_TRUNCATED", exception=r"\.(\w*ContextWindow\w*|ContextLength\w*|ContextOverflow\w*)$"),
    Rule(
        code="AI_CONTEXT_TRUNCATED",
        message=either(
            r"(maximum|max|model'?s?) context (length|window|size)",
            r"context (limit|length|window|size).{0,40}(exceed|reach|too)",
            r"exceed\w* (the )?(available |model'?s? |maximum )?context",
            r"exceeds? (the )?(model'?s? )?(max(imum)? )?(context|token|prompt) (length|limit|window|size)",
            r"(prompt|input)( is| \([^)]*\) is| \([^)]*\))? too long|too long for requested model",
            r"input (token )?(count|length).{0,60}exceed|range of input length",
            r"max_tokens must be at least 1, got -|too large for model with \d+ maximum context",
            r"reduce the length of (the|your) (messages|prompt|input)|exceeded model token limit",
            r"(inputs? tokens?|`inputs`).{0,60}must (be|have) (<=|less|at most)|prompt contains \d+ tokens",
            r"context size has been exceeded|longer than the (maximum )?model length",
            r"maximum (input|prompt) (length|tokens)|token limit exceeded for (the )?(model|context)",
            r"number of (input|prompt) tokens .{0,40}(exceed|larger|greater)|decoder prompt .{0,60}longer than",
            r"exceeds? (the )?maximum number of (input )?tokens",
        ),
    ),
    Rule(
        code="AI_CONTEXT_TRUNCATED",
        message=r"(上下文|prompt|提示词|输入|tokens?) ?.{0,10}(超长|过长|(超过|超出).{0,10}(最大|上限|长度|限制))",
    ),
    # Words of overload that stand in for quota, and the other way round.
    Rule(
        code="AI_QUOTA_EXHAUSTED",
        body=either(
            r"(^|\.)(code|type)=(billing_not_active|billing_hard_limit_reached|insufficient_user_quota",
            r"pre_consume_token_quota_failed|arrearage|account_overdue\w*|AccountOverdueError",
            r"exceeded_current_quota_error|insufficient_balance|budget_exceeded|credit_balance_exhausted",
            r"blocked_api_access|AllocationQuota\.FreeTierOnly|1113|1008|1112|1304|1308|1309|1310|30001)$",
        ),
    ),
    Rule(
        code="AI_OVERLOADED",
        message=either(
            r"负载(已|较|过)?(饱和|高|过高|大)|访问量过大|请求过多，?请稍后|当前.{0,6}繁忙",
            r"服务(器)?(繁忙|过载|拥挤)|系统繁忙|资源不足，?请稍后",
        ),
    ),
    Rule(
        code="AI_QUOTA_EXHAUSTED",
        message=either(
            r"余额不足|额度(不足|已?用(尽|完)|已?耗尽)|欠费|充值|资源包|(今日|每日|当日).{0,10}(上限|次数|用完)",
            r"使用上限|已用完|账[户号].{0,8}(欠|停用|余额)",
            r"配额(不足|已?用(尽|完))|套餐.{0,8}(到期|用完|用尽)",
        ),
    ),
    Rule(
        code="AI_RATE_LIMITED",
        message=either(
            r"速率限制|并发数?(过高|超|限制)|频率(过高|限制|超)",
            r"请求(过于频繁|频率|次数过多)|限流|(请求|调用)速度|控制请求|流控",
            r"(每分钟|RPM|TPM|QPS).{0,12}(上限|限制|超)",
        ),
    ),
    # Rate limits with quota words: the address of the explanation, the metric, or the minute tells.
    Rule(code="AI_RATE_LIMITED", message=r"error-code#(token|rate)-limit"),
    Rule(
        code="AI_RATE_LIMITED",
        body=either(
            r"(^|\.)(code|type)=(Throttling\.(AllocationQuota|RateQuota|BurstRate)|limit_burst_rate|limit_requests",
            r"Throttling)$",
        ),
    ),
    Rule(
        code="AI_QUOTA_EXHAUSTED",
        http_status="none, 400, 403, 429",
        message=either(
            r"(quotaId|quota_?metric|metric)\b.{0,160}(PerDay|per_day)|['\"]quotaValue['\"]: ?['\"]0['\"]",
            r"quota exceeded for (metric|quota metric).{0,200}\blimit: 0\b|limit: 0([,/\s\\]|$)",
        ),
    ),
    Rule(
        code="AI_QUOTA_EXHAUSTED",
        body=r"(^|\.)(quotaId=\S*PerDay\S*|quotaValue=0)$",
    ),
    Rule(code="AI_RATE_LIMITED", body=r"(^|\.)(retryDelay|quotaId)=(\d+(\.\d+)?s|\S*Per(Minute|Second)\S*)$"),
    Rule(
        code="AI_RATE_LIMITED",
        message=either(
            r"['\"]retryDelay['\"]: ?['\"][\d.]+s['\"]",
            r"quota exceeded for .{0,120}(per minute|per second|PerMinute)",
        ),
    ),
    # A wait of hours is a quota; a limit per day that frees itself in minutes is a rate.
    Rule(
        code="AI_RATE_LIMITED",
        http_status="none, 429",
        message=r"per day\b.{0,160}try again in (\d{1,2}m)?\d+(\.\d+)?m?s\b",
    ),
    Rule(code="AI_QUOTA_EXHAUSTED", http_status="429", header=r"^retry-after: ?\d{5,9}$"),
    Rule(code="AI_QUOTA_EXHAUSTED", http_status="429", message=r"(retry|try again) (after|in) \d{5,9} ?s"),
    Rule(
        code="AI_QUOTA_EXHAUSTED",
        message=either(
            r"insufficient[_ ](balance|credits?|funds|quota|user[_ ]quota)",
            r"balance is (too low|insufficient|not enough)|(credit|account) balance",
            r"not enough (credits?|balance|funds)|exceeded your current quota",
            r"exceeded (your|the) (monthly|daily|weekly|current) \w*",
            r"(monthly|daily|weekly|hourly|spending|spend|usage|billing|hard|credit",
            r"budget) (usage )?limits? (has been |have been |is |was |are )?(reached|exceeded|hit)",
            r"reached your (specified )?(api )?(usage|spend\w*|weekly|hourly|daily|monthly|session|5-hour)",
            r"extra usage is required|usage limits?\. you will regain|will regain access",
            r"(calls|requests) (/|per) (month|week)|monthly (calls|requests)",
            r"budget (has been|was|is)? ?exceeded|exceeded ?budget|over (its )?budget|max(imum)? budget",
            r"requires more credits|can only afford|add (more )?credits|purchase credits",
            r"(out of|no|used up|exhausted|used all|monthly included) (your |available |remaining |the )?(credits",
            r"call volume quota|free quota)",
            r"credits? (have|has)? ?(been )?(exhausted|depleted|expired)",
            r"(not active|suspended).{0,40}(billing|balance|recharge|quota)|check your (plan and )?billing",
            r"account in good standing|arrearage|overdue|recharge|no resource package",
            r"payment (required|instrument|method)|billing (details|account|not active|hard limit)",
            r"(tokens?|requests?) per day\b|per-day|daily (limit|quota|request)",
            r"free tier.{0,40}(exhausted|exceeded|used up)|free allocated quota",
            r"quota (has been |is )?(exhausted|used up|depleted)|key limit exceeded|higher monthly limit",
            r"service quota for|inactive subscription|subscription.{0,20}(expired|required|inactive)",
            r"plan.{0,20}expired|quota will be (replenished|reset)",
        ),
        http_status=_NOT_SERVER,
        retryable=False,
    ),
    Rule(
        code="AI_QUOTA_EXHAUSTED",
        exception=either(
            r"\.(BudgetExceededError|ModelQuotaExceededError|InsufficientQuota\w*|QuotaExceeded\w*",
            r"PaymentRequired\w*|ServiceQuotaExceededException)$",
        ),
    ),
    Rule(
        code="AI_QUOTA_EXHAUSTED",
        body=either(
            r"(^|\.)(code|type|reason)=(insufficient_quota|insufficient_credits|quota_exceeded|QuotaExceeded",
            r"payment_required|BILLING_DISABLED|billing_error)$",
        ),
        http_status=_NOT_SERVER,
    ),
    Rule(code="AI_QUOTA_EXHAUSTED", http_status="402"),
    # Overload and rate come after quota: what is used up is often worded as either.
    Rule(
        code="AI_OVERLOADED",
        message=either(
            r"overloaded|over[_ -]?capacity|capacity (exceeded|reached|limit|is full)|tier capacity",
            r"currently (experiencing|under) (high|heavy)|high (demand|load|traffic)|server (is )?(busy|overload)",
            r"too busy|model (is )?(too )?busy|service is (too )?busy|system is (too )?busy",
            r"no (available )?capacity|(insufficient|not enough|lack of) capacity|maximum pending requests",
            r"no slots? available|slot unavailable|slow[_ ]down|queue (is )?full|at capacity",
            r"temporarily out of capacity|peak load|engine.{0,10}limit ?exceeded",
        ),
    ),
    Rule(
        code="AI_OVERLOADED",
        body=either(
            r"(^|\.)(code|type|status|error_type|reason)=(overloaded|overloaded_error|server_is_overloaded",
            r"engine_overloaded\w*|ServerOverloaded|NoCapacity|slow_down|capacity_exceeded|model_overloaded|1305",
            r"1312)$",
        ),
    ),
    Rule(
        code="AI_OVERLOADED",
        message=r"serviceUnavailableException|unable to process your request\b",
        http_status="none, 2xx, 400, 424, 429, 500, 503",
    ),
    Rule(code="AI_OVERLOADED", exception=r"\.(OverloadedError|ServiceUnavailableException|ServerOverloaded\w*)$"),
    Rule(
        code="AI_RATE_LIMITED",
        message=either(
            r"rate[ _-]?limit(ed|s|ing)?\b|too many (requests|tokens|connections|concurrent)|throttl(ed|ing)",
            r"ThrottlingException|requests? per (minute|second|hour)|(tokens|requests) per min\b",
            r"request rate increased too quickly",
            r"(max|maximum|organization|concurrent|concurrency|concurrent connections).{0,20}\b(RPM|TPM|QPS",
            r"concurrency)\b",
            r"concurrency (limit|quota)",
            r"(limit|exceeded|reached|over).{0,24}(max_parallel_requests|parallel requests?)|crossed (TPM|RPM)",
            r"(qps|request) (request )?limit reached|request limit (exceeded|reached)",
            r"requests? (was|were|is|are) (being )?(throttled|limited)|you are being rate limited|cooldown",
            r"no deployments available|try again after \d+ seconds|slow down",
        ),
    ),
    Rule(
        code="AI_RATE_LIMITED",
        body=either(
            r"(^|\.)(code|type|status|reason|error_type)=(rate_limit\w*|RateLimit\w*|RequestLimitExceeded\w*",
            r"too_many_requests|TooManyRequests\w*|RATE_LIMIT_EXCEEDED|1302|1303|1002|limit_requests)$",
        ),
    ),
)
