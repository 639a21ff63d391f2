"""Every model of the engine."""

from tasks.models.api_key import ApiKey
from tasks.models.attempt import Attempt, ModelCall
from tasks.models.catalogue import ErrorCode, ErrorRule
from tasks.models.kind import Kind, Lane, PromptVersion
from tasks.models.limit import Limit, LimitCharge, LimitPlace
from tasks.models.log import AttemptLog
from tasks.models.people import OperatorAction, OperatorProfile, SignInTries
from tasks.models.provider import Provider
from tasks.models.tally import Tally, TallyDelta
from tasks.models.task import Task, TaskEvent
from tasks.models.worker import ClusterContact, WorkerProcess

__all__ = [
    "ApiKey",
    "Attempt",
    "AttemptLog",
    "ClusterContact",
    "ErrorCode",
    "ErrorRule",
    "Kind",
    "Lane",
    "Limit",
    "LimitCharge",
    "LimitPlace",
    "ModelCall",
    "OperatorAction",
    "OperatorProfile",
    "PromptVersion",
    "Provider",
    "SignInTries",
    "Tally",
    "TallyDelta",
    "Task",
    "TaskEvent",
    "WorkerProcess",
]
