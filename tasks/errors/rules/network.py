"""The way to the provider: certificates, timeouts, connections that were refused, reset or cut."""

from tasks.errors.rule import Rule, either

RULES = (
    # A connection that ended during the handshake is a lost connection, not a wrong certificate.
    Rule(
        code="AI_CONNECTION_FAILED",
        message=either(
            r"UNEXPECTED_EOF_WHILE_READING|EOF occurred in violation of protocol|BAD_RECORD_MAC",
            r"TLS/SSL connection has been closed|SSLZeroReturnError|SSL_ERROR_SYSCALL",
            r"handshake (operation )?timed out|application data after close notify",
        ),
    ),
    Rule(code="AI_TLS_FAILED", http_status="495, 496, 525, 526"),
    Rule(
        code="AI_TLS_FAILED",
        message=either(
            r"CERTIFICATE_VERIFY_FAILED|certificate (verify failed|has expired|is not (valid|trusted))",
            r"self[- ]signed certificate|hostname mismatch|doesn't match '|ssl handshake (failed|failure)",
            r"HANDSHAKE_FAILURE|TLSV1_ALERT|SSLV3_ALERT|UNSUPPORTED_PROTOCOL|NO_PROTOCOLS_AVAILABLE",
            r"DH_KEY_TOO_SMALL|\[SSL\b|\[X509|x509: |unable to get (local )?issuer|Caused by SSLError|tls: ",
        ),
    ),
    Rule(
        code="AI_TLS_FAILED",
        exception=either(
            r"\.(SSLError|SSLCertVerificationError|ClientConnectorCertificateError|ClientConnectorSSLError",
            r"ClientSSLError|CertificateError)$",
        ),
    ),
    Rule(code="AI_CONNECTION_FAILED", http_status="521, 522, 523, 530"),
    Rule(code="AI_MODEL_TIMEOUT", http_status="408, 504, 524, 598, 599"),
    # Waiting for a connection is not waiting for the model.
    Rule(
        code="AI_CONNECTION_FAILED",
        exception=either(
            r"(^|\.)(ConnectTimeout|ConnectTimeoutError|ConnectionTimeoutError|PoolTimeout|WriteTimeout",
            r"NewConnectionError|NameResolutionError|MaxRetryError)$",
        ),
    ),
    Rule(
        code="AI_CONNECTION_FAILED",
        message=either(
            r"connect(ion)? timeout|connect timed out|connection to .{1,200} timed out",
            r"timed out (while )?connecting|timed out during (opening|the opening) handshake|\[Errno 110\]",
            r"ETIMEDOUT",
        ),
    ),
    Rule(
        code="AI_MODEL_TIMEOUT",
        exception=either(
            r"(^|\.)(APITimeoutError|ReadTimeout|ReadTimeoutError|ServerTimeoutError|SocketTimeoutError",
            r"TimeoutException|TimeoutError|Timeout|ModelTimeoutException|ModelTimeoutError|DeadlineExceeded",
            r"GatewayTimeout|timeout|RequestTimeout\w*|InferenceTimeoutError)$",
        ),
    ),
    Rule(
        code="AI_MODEL_TIMEOUT",
        message=either(
            r"(request|read|model|operation|generation|inference|response|call|upstream) (has |was ",
            r"is )?(timed? ?out|timeout)",
            r"timed out|deadline[ _]exceeded|RequestTimeOut|timeout (exceeded|error|on reading|while)",
            r"gateway time-?out|idle timeout|(请求|响应|读取|模型|调用)?超时",
        ),
        http_status="none, 2xx, 400, 424, 500, 502, 503",
    ),
    Rule(
        code="AI_CONNECTION_FAILED",
        message=either(
            r"connection (error\b|refused|reset|aborted|closed|lost|terminated|broken|was (closed|reset|lost)",
            r"attempts failed)",
            r"all connection attempts failed|failed to establish a new connection",
            r"(could not|cannot|can't|failed to|unable to) (connect|resolve|reach)|server disconnected",
            r"remote end closed|peer closed connection|incomplete (chunked )?read|IncompleteRead",
            r"response payload is not completed|response ended prematurely|name or service not known",
            r"name resolution|nodename nor servname|no address associated|getaddrinfo|broken pipe",
            r"network is unreachable|no route to host|host is unreachable",
            r"\[Errno (-2|-3|-5|32|99|101|103|104|111|113)\]|ECONN(REFUSED|RESET|ABORTED)|ENOTFOUND|EAI_AGAIN",
            r"EPIPE|socket hang up|unexpected EOF|stream (was )?(reset|closed|ended|interrupted|disconnected)",
            r"StreamReset|ConnectionTerminated|GOAWAY|premature (close|end)|invalid chunk",
            r"error while (reading|decoding) (response|chunk)|failed to connect to all addresses",
            r"connect call failed|Cannot connect to proxy|upstream prematurely closed",
            r"网络(错误|异常)|连接(失败|超时|中断|被重置)",
        ),
        http_status="none, 2xx, 400, 500",
    ),
    Rule(
        code="AI_CONNECTION_FAILED",
        exception=either(
            r"(^|\.)(ConnectError|ConnectionError|ConnectionRefusedError|ConnectionResetError",
            r"ConnectionAbortedError|BrokenPipeError|ReadError|WriteError|RemoteProtocolError|ProtocolError",
            r"CloseError|NetworkError|TransportError|ServerDisconnectedError|ClientConnectorError",
            r"ClientConnectorDNSError|ClientConnectionError|ClientOSError|ClientPayloadError",
            r"ClientConnectionResetError|ChunkedEncodingError|ContentDecodingError|IncompleteRead",
            r"RemoteDisconnected|EndpointConnectionError|ConnectionClosedError|HTTPClientError|ProxyError",
            r"ProxyConnectionError|gaierror|herror|ClosedResourceError|BrokenResourceError|EndOfStream",
            r"ConnectionClosed\w*|IncompleteReadError|ModelConnectionError|ResponseStreamingError|StreamError",
            r"StreamClosedError|DecodingError|ResponseNotRead|WebSocketException|WebSocketConnectionClosedError)$",
        ),
        http_status="none, 2xx",
    ),
    Rule(code="AI_CONNECTION_FAILED", message=r"\bStatusCode\.UNAVAILABLE\b"),
    Rule(code="AI_CONNECTION_FAILED", exception=r"(^|\.)APIConnectionError$", http_status="none, 2xx"),
)
