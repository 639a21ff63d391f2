"""Which variables of a worker's environment are not a provider's to have. Pure.

Whoever may configure names the variable of a provider's key, and the address that it is sent to. So the secrets of the
installation itself are refused, at every door and again by the worker: else a provider with an address of one's own and
the variable ``SECRET_KEY`` would be a way to read it. Other variables cannot be told from keys: give the worker none
that people who configure may not have.
"""

from __future__ import annotations

#: Settings of Redrive (besides REDRIVE_*), what programs live by, and the identity of the machine.
_NAMES = frozenset(
    {"SECRET_KEY", "DATABASE_URL", "DEBUG", "ALLOWED_HOSTS", "TRUST_PROXY"}
    | {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "OLDPWD", "LANG", "LANGUAGE", "TERM", "TMPDIR", "TZ"}
    | {"HOSTNAME", "MAIL", "IFS", "VIRTUAL_ENV"}
    | {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN"}
    | {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN"}
)
_PREFIXES = (
    *("REDRIVE_", "DJANGO_", "PG", "POSTGRES", "PYTHON", "LD_", "DYLD_", "LC_", "XDG_", "SSH_", "SUDO_"),
    *("CREDENTIALS_", "KUBERNETES_"),
)
#: Addresses, which carry passwords.
_SUFFIXES = ("_URL", "_URI", "_DSN", "_PROXY")
_FILE = "_FILE"


def is_reserved(variable: str) -> bool:
    """Whether a variable is Redrive's own, the database's, the system's or an address; also as ``NAME_FILE``."""
    name = variable.upper()
    while name.endswith(_FILE):
        name = name.removesuffix(_FILE)
    return name in _NAMES or name.startswith(_PREFIXES) or name.endswith(_SUFFIXES)
