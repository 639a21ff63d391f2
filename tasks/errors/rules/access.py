"""Who may ask for what: our own configuration, keys, permissions, models, parameters that are not accepted."""

from tasks.errors.rule import Rule, either

_KEY = (
    r"(api[ _-]?key|(access|subscription|auth|bearer|security|oauth|refresh|api|proxy server) ?(key|token)"
    r"|token|credentials?)"
)
_ANSWERED = "none, 2xx, 400, 401, 403"

RULES = (
    Rule(
        code="AI_CONFIG_INVALID",
        message=either(
            r"client option must be set|api_?key (must be set|is (missing|required|not set))",
            r"set the `?[A-Z_]+(KEY|TOKEN)`? environment variable|missing credentials\. please pass",
            r"unable to locate credentials|default credentials were not found",
            r"could not resolve authentication method|no api[ _-]?key (was )?(provided|found|set)",
            r"did not provide an api key|you must specify a region|LLM provider NOT provided",
            r"missing required (environment|configuration)|--enable-auto-tool-choice|request url is missing",
            r"unsupported protocol|missing schema|invalid (base )?url|unknown scheme|no scheme supplied",
            r"no host (supplied|included)|url error, please check url|illegal header value",
            r"invalid (leading whitespace|header value|return character)|plain http request was sent to https",
            r"http request to an https server|WRONG_VERSION_NUMBER|api[- ]version (is )?not supported",
            r"unsupported api[- ]version|proxy authentication required",
            r"could not find a suitable TLS CA certificate bundle|too many redirects|exceeded \d+ redirects",
        ),
    ),
    Rule(
        code="AI_CONFIG_INVALID",
        exception=either(
            r"\.(UnsupportedProtocol|InvalidURL|MissingSchema|InvalidSchema|InvalidHeader|NoCredentialsError",
            r"UserError)$",
            r"\.(PartialCredentialsError|NoRegionError|DefaultCredentialsError|LocalProtocolError",
            r"ImproperlyConfigured)$",
            r"\.(TooManyRedirects|ProfileNotFound|InvalidUrlClientError|NonHttpUrlClientError|LocationParseError)$",
            r"\.(InvalidProxyURL|CookieConflict|MissingAPIKey\w*|APIKeyMissing\w*)$",
        ),
    ),
    Rule(code="AI_CONFIG_INVALID", http_status="301, 302, 303, 307, 308, 405, 407"),
    # A bot challenge or a firewall knows no keys.
    Rule(
        code="AI_PERMISSION_DENIED",
        message=either(
            r"just a moment\.\.\.|enable javascript and cookies|cf[_-]chl|attention required! \| cloudflare",
            r"you have been blocked|checking your browser|captcha|access denied \| |web application firewall",
            r"\berror (code: )?10(06|07|08|09|10|20)\b",
        ),
    ),
    # An access token that its owner can renew; a fixed key stays wrong.
    Rule(
        code="AI_AUTH_FAILED",
        message=r"OAuth (access )?token has expired|obtain a new token or refresh",
        retryable=True,
    ),
    # The key itself is named as wrong.
    Rule(
        code="AI_AUTH_FAILED",
        message=either(
            rf"\b(incorrect|invalid|wrong|bad|unknown|expired|revoked|missing|malformed) (x-)?{_KEY}\b",
            rf"\b{_KEY}( \w+)? (is|are|was|has been)( \w+)? (not valid|invalid|incorrect|wrong|expired|revoked)\b",
            rf"\b{_KEY}( \w+)? (is|are|was|has been)( \w+){{0,2}} (leaked|deactivated|disabled|deleted|unknown)\b",
            rf"\b{_KEY} (not valid|not found|expired|revoked|included in the request is (invalid|expired))",
            rf"\b{_KEY}: \S+ is invalid|invalid authentication|no auth credentials|user not found\b|invalid_grant",
            r"signature (has )?expired|signature .{0,40}does not match|must be a member of an organization|login fail",
            r"(invalid|no) (username|password|cookie auth)|invalid user(name)? or password",
            r"(令牌|密钥|token|API ?key).{0,10}(无效|错误|已?过期|不存在|失效|状态不可用)",
            r"无效的(令牌|密钥|token|API)|身份验证|鉴权失败|认证失败|reauthentication is needed",
        ),
        # Gateways wrap the refusal of a key into errors of their own.
        http_status="none, 2xx, 400, 401, 403, 404, 500, 503",
    ),
    Rule(
        code="AI_PERMISSION_DENIED",
        message=either(
            r"(country|region|territory|location)( is|,)?.{0,16} (not |un)supported",
            r"not (supported|available) (in|for) your (country|region|location)",
            r"ip (address )?.{0,40}(not allowed|blocked|whitelist)",
            r"(does not|doesn't|do not|don't|not) have (permission|access|sufficient permission|the required)",
            r"lacks? (the )?(required|permission|access)|permission[_ ]denied",
            r"insufficient (permissions?|privileges|scope)|missing scopes",
            r"access to (the )?(requested )?model .{0,60}(denied|not)|not allowed to access|request not allowed",
            r"not (authorized|allowed|permitted|entitled|enabled) (to|for) |has not been used in project",
            r"it is disabled|must be verified to use|gated (repo|model)",
            r"access (is |was )?(denied|restricted|forbidden)|explicit deny",
            r"(organization|account|project|workspace|user) .{0,60}has been (disabled|restricted|suspended|banned",
            r"blocked)",
            r"public access is disabled|private endpoint|data policy|not been (granted|approved)|Unpurchased",
            r"requires? (approval|a subscription to)|无(权|访问权限)|没有(权限|访问)|禁止访问|未开通|未授权",
        ),
        http_status="none, 2xx, 400, 401, 403, 451",
    ),
    Rule(
        code="AI_PERMISSION_DENIED",
        body=either(
            r"(^|\.)(code|type|reason|status|error)=(permission\w*|unsupported_country\w*|access_denied",
            r"AccessDenied\w*|AuthorizationFailed|model_not_allowed|key_model_access_denied|SERVICE_DISABLED|1220",
            r"forbidden)$",
        ),
        http_status=_ANSWERED,
    ),
    Rule(code="AI_PERMISSION_DENIED", http_status="404", message=r"data policy|privacy settings|gated (repo|model)"),
    Rule(code="AI_PERMISSION_DENIED", exception=r"\.(AccessDeniedException|GatedRepoError|ModelPermission\w*)$"),
    Rule(
        code="AI_AUTH_FAILED",
        message=either(
            r"authentication (error|fails|failed|required)|unauthorized|unauthenticated",
            r"could not (be )?authenticat",
            r"\((UnrecognizedClient|ExpiredToken|InvalidSignature|InvalidClientTokenId",
            r"MissingAuthenticationToken)\w*\)",
            r"\(SignatureDoesNotMatch\w*\)|security token|did not provide .{0,20}(api key|credentials)",
        ),
        http_status=_ANSWERED,
    ),
    Rule(
        code="AI_AUTH_FAILED",
        body=either(
            r"(^|\.)(code|type|reason|status|error)=(invalid_api_key|InvalidApiKey|authentication_error",
            r"UNAUTHENTICATED|invalid_authentication\w*|API_KEY_INVALID|unauthorized|UnrecognizedClientException",
            r"ExpiredToken\w*|token_not_found_in_db|invalid_token|account_deactivated)$",
        ),
        http_status=_ANSWERED,
    ),
    Rule(
        code="AI_AUTH_FAILED",
        exception=either(
            r"(^|\.)(AuthenticationError|Unauthorized\w*|RefreshError|ExpiredTokenException",
            r"UnrecognizedClientException)$",
            r"(^|\.)(InvalidSignatureException|ModelAuthenticationError|OAuthError|Unauthenticated)$",
            r"(^|\.)CredentialRetrievalError$",
        ),
    ),
    Rule(code="AI_AUTH_FAILED", http_status="401"),
    # What the model cannot do is a parameter; that it is not there is its name.
    Rule(
        code="AI_INPUT_INVALID",
        message=either(
            r"does(n't| not) support (tools?|tool use|function|images?|vision|audio|streaming|system",
            r"response_format|json|thinking|the )",
            r"does not support [\d.]+ with this model",
            r"(not supported|unsupported) (with|by|for|in) (this|the) model",
            r"unsupported (parameter|value|content type|media|image)|no endpoints found that support",
            r"support for .{0,40}is not enabled|this model supports at most|operation does not work with",
        ),
        http_status="none, 2xx, 4xx",
    ),
    Rule(
        code="AI_MODEL_NOT_FOUND",
        message=either(
            r"\b(model|deployment|engine|inference profile|publisher model|models?/\S+",
            r"model id)\b.{0,160}(not found|not exist|unknown)",
            r"\b(model|deployment|engine|endpoint)\b.{0,120}(does(n't| not) exist|no longer (available|supported)",
            r"decommissioned)",
            r"\b(model|deployment)\b.{0,120}(deprecated|retired|end of life|is not available",
            r"not currently available|unavailable for)",
            r"\bmodel\b.{0,80}(is invalid|is legacy|as legacy|isn.?t (available|supported))|repository not found",
            r"\b(unknown|invalid|no such|not a valid|unsupported|no available) (model|deployment)\b",
            r"model[_ ]?not[_ ]?(found|exist)|on-demand throughput isn|unable to access (non-serverless )?model",
            r"no endpoints found|no allowed providers",
            r"try pulling it first|not found the model|no available (channel|model provider)|invalid model",
            r"模型.{0,30}(不存在|未找到|已下线|不支持)|无可用渠道",
        ),
        http_status="none, 2xx, 400, 403, 404, 410, 422, 500, 503",
    ),
    Rule(
        code="AI_MODEL_NOT_FOUND",
        body=either(
            r"(^|\.)(code|type|reason)=(model_not_found|ModelNotFound|DeploymentNotFound|model_decommissioned",
            r"invalid_model|model_not_supported|not_found_error|resource_not_found_error|1211",
            r"InvalidEndpointOrModel\S*|ModelNotOpen|unknown_model)$",
        ),
    ),
    Rule(
        code="AI_MODEL_NOT_FOUND",
        exception=r"\.(RepositoryNotFoundError|ModelNotFound\w*|ResourceNotFoundException)$",
    ),
    # A path that does not exist is a wrong base URL.
    Rule(code="AI_CONFIG_INVALID", http_status="404", body=r"^html=|(^|\.)detail=Not Found$"),
    Rule(
        code="AI_CONFIG_INVALID",
        http_status="404",
        message=either(
            r"page not found|invalid url|unknown (request )?url|no (such )?route|cannot (POST|GET) /",
            r"resource not found|file not found|unknown path|no static resource",
        ),
    ),
    # Other refusals of a request carry a 4xx, which says it as well.
    Rule(
        code="AI_INPUT_INVALID",
        message=either(
            r"InvalidParameter|INVALID_ARGUMENT|ValidationException|extra inputs are not permitted|malformed input",
            r"unrecognized request argument|maximum tokens you requested|invalid (schema|parameter|request)\b",
            r"could not process image|unable to process input|streaming is (strongly recommended|required)",
            r"missing required (parameter|argument)",
            r"参数(错误|非法|无效|有误|不合法)|请求(格式|参数).{0,8}(错误|有误|无效)",
        ),
        http_status="none, 2xx, 400, 422",
    ),
    Rule(
        code="AI_INPUT_INVALID",
        body=either(
            r"(^|\.)(code|type|status)=(invalid_request\w*|invalid_parameter\w*|InvalidParameter\S*",
            r"INVALID_ARGUMENT|invalid_value)$",
        ),
        http_status="none, 2xx, 400, 422",
    ),
)
