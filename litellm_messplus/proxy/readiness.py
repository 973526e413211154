"""Whether a worker routes now, from its memory alone: no database is asked, so anybody may ask."""

from enum import StrEnum

from litellm_messplus.journal import Journal
from litellm_messplus.proxy.shared_counters import SharedCounters


class Readiness(StrEnum):
    """The states of a worker that serves.

    ``DEGRADED``: it routes, and what it decides waits in memory, for the database does not take it.
    ``ABSENT``: it has waited for the database since its start, and serves as without the plugin.
    """

    ROUTING = "routing"
    DEGRADED = "degraded"
    ABSENT = "absent"


def readiness(journal: Journal, shared: SharedCounters) -> Readiness:
    """Tell the state of the worker whose parts these are, as of what each last tried."""
    if not shared.is_started:
        return Readiness.ABSENT
    is_degraded = journal.is_failing or shared.is_failing
    return Readiness.DEGRADED if is_degraded else Readiness.ROUTING
