"""The configuration in Django's admin: providers, kinds, error codes and rules, for the people who may configure."""

from tasks.admin.api_key import ApiKeyAdmin
from tasks.admin.catalogue import ErrorCodeAdmin, ErrorRuleAdmin
from tasks.admin.kind import KindAdmin, PromptVersionAdmin
from tasks.admin.provider import ProviderAdmin

__all__ = ["ApiKeyAdmin", "ErrorCodeAdmin", "ErrorRuleAdmin", "KindAdmin", "PromptVersionAdmin", "ProviderAdmin"]
