"""Every move of a task, single and batched: the only place that writes ``status``."""

from tasks.lifecycle.brakes import Hold, hold_provider, pause_kind, release_provider, resume_kind
from tasks.lifecycle.charges import forget_charges
from tasks.lifecycle.claim import Taken, claim, claim_batch
from tasks.lifecycle.claimed import Claimed
from tasks.lifecycle.due import expire, make_due, realign
from tasks.lifecycle.end import End, FailureRecord, Usage
from tasks.lifecycle.finish import Saved, finish
from tasks.lifecycle.fullness import Full, Fullness, fullness
from tasks.lifecycle.here import record_run
from tasks.lifecycle.log import LogLine, keep_log
from tasks.lifecycle.moves import note
from tasks.lifecycle.people import cancel, reprocess, run_now, set_priority
from tasks.lifecycle.places import Place, clear_places, take_place
from tasks.lifecycle.reconcile import Answer, Answered, Asked, answer, ask, renew
from tasks.lifecycle.recorder import recorder, register_recorder, registered_recorders
from tasks.lifecycle.rescue import has_orphans, mark_lost, rescue
from tasks.lifecycle.running import exchange, goes_on, strays
from tasks.lifecycle.submit import SubmitError, submit, submit_many
from tasks.lifecycle.unknown import settle_unknown

__all__ = [
    "Answer",
    "Answered",
    "Asked",
    "Claimed",
    "End",
    "FailureRecord",
    "Full",
    "Fullness",
    "Hold",
    "LogLine",
    "Place",
    "Saved",
    "SubmitError",
    "Taken",
    "Usage",
    "answer",
    "ask",
    "cancel",
    "claim",
    "claim_batch",
    "clear_places",
    "exchange",
    "expire",
    "finish",
    "forget_charges",
    "fullness",
    "goes_on",
    "has_orphans",
    "hold_provider",
    "keep_log",
    "make_due",
    "mark_lost",
    "note",
    "pause_kind",
    "realign",
    "record_run",
    "recorder",
    "register_recorder",
    "registered_recorders",
    "release_provider",
    "renew",
    "reprocess",
    "rescue",
    "resume_kind",
    "run_now",
    "set_priority",
    "settle_unknown",
    "strays",
    "submit",
    "submit_many",
    "take_place",
]
