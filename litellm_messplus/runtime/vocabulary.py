"""The words of the log: who judges, what role a call had, how things ended, where a cost is from.

Each is a name in the database, in settings and in every report. They stand apart from the records
so that the pure rooms can speak of them.
"""

from enum import StrEnum


class LabelKind(StrEnum):
    """The kinds of label sources: who judges."""

    FEEDBACK = "feedback"
    CHECK = "check"
    JUDGE = "judge"
    IMPLICIT = "implicit"


PRECEDENCE = (LabelKind.FEEDBACK, LabelKind.CHECK, LabelKind.JUDGE, LabelKind.IMPLICIT)
"""Whose word counts first, unless settings say otherwise: what a user says beats what a program
finds, which beats what a model thinks, which beats what is read from behaviour."""


class Change(StrEnum):
    """The changes of a candidate that are logged."""

    APPEARED = "appeared"
    PRICED = "priced"
    GONE = "gone"


class CallRole(StrEnum):
    """The roles of a call: whether the user saw the answer."""

    SERVED = "served"
    EXPLORATION = "exploration"


class CallStatus(StrEnum):
    """The ways in which a call ends."""

    SUCCESS = "success"
    FAILURE = "failure"


class Failure(StrEnum):
    """The causes for which a call ends without an answer: who failed."""

    UPSTREAM = "upstream"
    NO_DEPLOYMENT = "no_deployment"
    DEADLINE = "deadline"
    CLIENT_GONE = "client_gone"
    REFUSED = "refused"
    """The request itself was at fault."""


SERVING = (Failure.UPSTREAM, Failure.NO_DEPLOYMENT, Failure.DEADLINE)
"""Failures of those who serve: a user who waited got an error for a request as it should be."""
FAILED = "check:failure"
"""The source of the one label that counts of a request without an answer: it is given where a
promise has `failures: count`."""


class GradingStatus(StrEnum):
    """The ways in which a grading ends."""

    GRADED = "graded"
    NONSENSE = "nonsense"
    FAILURE = "failure"


class Preferred(StrEnum):
    """The one of two answers that a judge found better, by the place in which it was shown."""

    FIRST = "first"
    SECOND = "second"
    NEITHER = "neither"


class CostSource(StrEnum):
    """The sources of a call's cost. Unmeasured is not zero."""

    MEASURED = "measured"
    COUNTED = "counted"
    ESTIMATED = "estimated"
    UNKNOWN = "unknown"


BEFORE_SUFFIX = ":before"
"""Ends the name of the stream that requests served as before are counted in: they move no promise
of the operator's, and have numbers and a virtual queue of their own."""
WARM_UP = 250
"""Requests of such a stream, its first, in which the router learns what it will know when it is
switched on: then its queue begins anew, and no forecast is made of them."""


def level_before(level: str) -> str:
    """Name the stream beside a service level, of its requests that are served as before."""
    return f"{level}{BEFORE_SUFFIX}"


def promise_of(level: str) -> str:
    """Name the service level that such a stream is beside; a promise is its own."""
    return level.removesuffix(BEFORE_SUFFIX)


def is_before(level: str) -> bool:
    """Tell whether a service level of the log is such a stream."""
    return level.endswith(BEFORE_SUFFIX)
