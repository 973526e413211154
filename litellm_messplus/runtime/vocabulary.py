"""The vocabulary of the log: kinds of judges, roles of calls, ways to end, sources of costs.

Each word is a name in the database, in settings and in every report. They are apart from the
records so that pure packages can import them.
"""

from enum import StrEnum


class LabelKind(StrEnum):
    """The kinds of label sources: who judges."""

    FEEDBACK = "feedback"
    CHECK = "check"
    JUDGE = "judge"


PRECEDENCE = (LabelKind.FEEDBACK, LabelKind.CHECK, LabelKind.JUDGE)
"""The default precedence of labels, strongest first: a user's feedback, a program's check, a
model's judgement."""


class Change(StrEnum):
    """The changes of a candidate that are logged."""

    APPEARED = "appeared"
    PRICED = "priced"
    GONE = "gone"


class CallRole(StrEnum):
    """The roles of a call: whether the user saw the answer."""

    SERVED = "served"
    EXPLORATION = "exploration"
    REPLACED = "replaced"
    """It answered first, and another model was called because of how the answer looks: the user
    did not see it."""


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
    UNKNOWN = "unknown"
    """Nothing told how it ended."""


SERVING = (Failure.UPSTREAM, Failure.NO_DEPLOYMENT, Failure.DEADLINE, Failure.UNKNOWN)
"""Failures in serving: the user got an error for a valid request."""


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
"""The suffix of the stream that counts requests served as before: they count towards no promise of
the operator, and have numbers and a virtual queue of their own."""
WARM_UP = 250
"""The first requests of such a stream, from which the router learns before it is switched on: after
them the queue is reset, and no forecast uses them."""


def level_before(level: str) -> str:
    """Return the stream of a service level's requests that are served as before."""
    return f"{level}{BEFORE_SUFFIX}"


GRANT_SUFFIX = ":asked"
"""The suffix of the stream that counts the requests that were granted the level: its promise is
kept to them apart, so that no caller changes what the keys of that level are promised."""


def level_grants(level: str) -> str:
    """Return the stream of the requests that were granted a service level."""
    return f"{level}{GRANT_SUFFIX}"


def promise_of(level: str) -> str:
    """Return the service level of a stream of requests served as before; a promise is its own."""
    return level.removesuffix(BEFORE_SUFFIX)


def is_before(level: str) -> bool:
    """Tell whether a service level of the log is such a stream."""
    return level.endswith(BEFORE_SUFFIX)
