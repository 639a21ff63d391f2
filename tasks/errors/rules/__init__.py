"""The built-in rules, in the order in which they are asked: what is certain by its class first, the bare status last.

They follow how providers and libraries behave, family by family. Within a family the narrow rule stands before the wide
one: a quota before a rate limit, a request that is too large before both, a certificate before a lost connection.
"""

from tasks.errors.rules import access, agents, content, engines, fallback, limits, network, output, own, storage

RULES = (
    *own.RULES,
    *storage.RULES,
    *agents.RULES,
    *output.RULES,
    *content.RULES,
    *limits.RULES,
    *engines.RULES,
    *access.RULES,
    *network.RULES,
    *fallback.RULES,
)

__all__ = ["RULES"]
