"""Databases and queues that a handler uses, by the classes of their drivers; texts of the server tell the rest."""

from tasks.errors.rule import Rule, either

_DB = (
    r"^(psycopg2?|psycopg_pool|psycopg_c|psycopg_binary|asyncpg|sqlalchemy|django\.db"
    r"|peewee|pymysql|MySQLdb|mysql|aiomysql|sqlite3"
    r"|aiosqlite|pymongo|motor|cassandra|tortoise|clickhouse_\w+|oracledb|pyodbc)\b"
)
_QUEUE = (
    r"^(redis|aioredis|kombu|amqp|aio_?pika|pika|celery\.exceptions\.OperationalError"
    r"|aiokafka|kafka|confluent_kafka|nats|rq|valkey)\b"
)

RULES = (
    # What the model wrote cannot be stored: the class is the database's, the fault is the answer's.
    Rule(
        code="AI_OUTPUT_MALFORMED",
        exception=_DB,
        message=either(
            r"\bNUL \(0x00\)|\b0x00\b|\\u0000 cannot be converted|invalid byte sequence for encoding",
            r"unsupported unicode escape|surrogates not allowed|invalid input syntax for type json",
        ),
    ),
    Rule(
        code="AI_DB_CONFLICT",
        exception=_DB
        + either(
            r".*\.(UniqueViolation(Error)?|ForeignKeyViolation(Error)?|NotNullViolation(Error)?",
            r"CheckViolation(Error)?|ExclusionViolation(Error)?|IntegrityError|DuplicateKeyError)$",
        ),
        retryable=False,
    ),
    Rule(
        code="AI_DB_CONFLICT",
        exception=_DB,
        message=either(
            r"duplicate key value|UNIQUE constraint failed|\(1062,|E11000",
            r"violates (unique|foreign key|check|not-null)",
        ),
        retryable=False,
    ),
    Rule(
        code="AI_DB_CONFLICT",
        exception=_DB
        + either(
            r".*\.(DeadlockDetected(Error)?|SerializationFailure|SerializationError|LockNotAvailable(Error)?",
            r"TransactionRollback(Error)?|StaleDataError|OptimisticLockError)$",
        ),
    ),
    Rule(
        code="AI_DB_CONFLICT",
        exception=_DB,
        message=either(
            r"deadlock (detected|found)|could not serialize access|lock timeout|could not obtain lock",
            r"lock wait timeout|database (table )?is locked|write conflict|restart transaction|\(12(05|13),",
        ),
    ),
    # The server knows us and says no, or our statement is wrong: no wait helps.
    Rule(
        code="AI_DB_UNAVAILABLE",
        exception=_DB,
        message=either(
            r"password authentication failed|no password supplied|no pg_hba\.conf entry|access denied for user",
            r"(role|database|user) .{1,80} does not exist|unknown database|permission denied",
            r"certificate verify failed|authentication failed|not allowed to connect|does not support SSL",
            r"invalid (dsn|connection option|port)",
        ),
        retryable=False,
    ),
    Rule(
        code="AI_DB_UNAVAILABLE",
        exception=either(
            r"\.(InvalidPassword(Error)?|InvalidAuthorizationSpecification(Error)?|InsufficientPrivilege(Error)?",
            r"InvalidCatalogName(Error)?)$",
        ),
        retryable=False,
    ),
    Rule(
        code="AI_UNKNOWN_ERROR",
        exception=_DB
        + either(
            r".*\.(ProgrammingError|UndefinedTable(Error)?|UndefinedColumn(Error)?|UndefinedFunction(Error)?",
            r"SyntaxError|SyntaxErrorOrAccessRuleViolation|NotSupportedError|InFailedSqlTransaction",
            r"TransactionManagementError|InFailedSQLTransactionError|DataError|StringDataRightTruncation",
            r"NumericValueOutOfRange|InvalidTextRepresentation|InvalidRequestError|PendingRollbackError",
            r"ObjectDoesNotExist|NoResultFound|MultipleResultsFound|StatementError|ArgumentError|CompileError)$",
        ),
        retryable=False,
    ),
    Rule(
        code="AI_UNKNOWN_ERROR",
        exception=_DB,
        message=either(
            r"syntax error at or near|relation .{1,80} does not exist|column .{1,80} does not exist",
            r"no such (table|column)|another operation is in progress",
        ),
        retryable=False,
    ),
    Rule(code="AI_RESOURCE_EXHAUSTED", exception=r"\.DiskFull(Error)?$"),
    Rule(
        code="AI_DB_UNAVAILABLE",
        exception=_DB + r".*(OperationalError|InterfaceError|InternalError|DatabaseError|DBAPIError"
        r"|Timeout|Shutdown|Connect"
        r"|TooMany|CrashShutdown|QueryCanceled|PoolClosed|ReadOnlySqlTransaction"
        r"|AutoReconnect|NetworkTimeout|NotPrimary"
        r"|ObjectNotInPrerequisiteState|PostgresError|InsufficientResources|OutOfMemory"
        r"|IdleSession|IdleInTransaction|\.Error$)",
    ),
    # A database's words from a class that is none of its own.
    Rule(
        code="AI_DB_UNAVAILABLE",
        message=either(
            r"QueuePool limit of size|couldn't get a connection after|too many clients already",
            r"remaining connection slots|the database system is (starting up|shutting down|in recovery)",
            r"terminating connection due to administrator|server closed the connection unexpectedly",
            r"SSL connection has been closed unexpectedly|MySQL server has gone away|query_wait_timeout",
            r"server login has been failing|cannot execute \w+ in a read-only transaction",
        ),
    ),
    Rule(
        code="AI_QUEUE_UNAVAILABLE",
        exception=_QUEUE,
        message=either(
            r"NOAUTH|WRONGPASS|invalid (username|password)|username-password|AUTH failed|authentication required",
            r"NOPERM|ACCESS_REFUSED|without any password configured|Client sent AUTH|no permissions",
        ),
        retryable=False,
    ),
    Rule(
        code="AI_QUEUE_UNAVAILABLE",
        exception=_QUEUE + r".*(Authentication\w*|NoPermission\w*|AccessRefused)$",
        retryable=False,
    ),
    Rule(
        code="AI_UNKNOWN_ERROR",
        exception=_QUEUE,
        message=r"\bWRONGTYPE\b|unknown command|wrong number of arguments",
        retryable=False,
    ),
    Rule(
        code="AI_UNKNOWN_ERROR",
        exception=_QUEUE + r".*\.(DataError|ContentDisallowed|EncodeError|DecodeError|SerializationError)$",
        retryable=False,
    ),
    Rule(code="AI_DB_CONFLICT", exception=_QUEUE + r".*(LockError|LockNotOwnedError|WatchError)$"),
    Rule(code="AI_QUEUE_UNAVAILABLE", exception=_QUEUE),
    Rule(
        code="AI_QUEUE_UNAVAILABLE",
        message=either(
            r"\b(MASTERDOWN|CLUSTERDOWN|MISCONF|BUSYLOADING)\b|redis is loading|read only replica",
            r"used memory > 'maxmemory'|CONNECTION_FORCED|Error -?\d+ connecting to [^ ]+:63\d\d",
        ),
    ),
)
