"""The errors that a user of the plugin can meet, and the end of a start that failed."""

import os
import sys
import traceback
from typing import NoReturn


class MessplusError(Exception):
    """Base class of every error that the plugin raises on purpose."""


class ConfigurationError(MessplusError):
    """The configuration cannot be applied, so the proxy must not start.

    The message names the key, the value given, and the values allowed.
    """

    def __init__(self, key: str, given: object, allowed: str) -> None:
        self.key = key
        self.given = given
        self.allowed = allowed
        super().__init__(f"{key}: given {given!r}; allowed: {allowed}")


class DatabaseAwayError(ConfigurationError):
    """The database does not answer now, but may later without any change of the configuration."""


class RefusedError(MessplusError):
    """A request for what does not exist. The message is for the client."""


class JournalFullError(MessplusError):
    """The database has been away for so long that no more records are held for it."""


class NotWrittenError(MessplusError):
    """The record was withdrawn before it was written, and never will be."""


class UnsettledError(MessplusError):
    """The transaction that may have written the record does not end."""


class NoAnswerError(MessplusError):
    """A call ended without an answer although LiteLLM raised no error."""


LOST = NoAnswerError("no end was reported")


class BrokenLogError(MessplusError):
    """The database is there, but holds no valid log; the message states what to do."""


class UnknownRequestError(MessplusError):
    """The caller has no request under the given id. Whether another key has one is never
    disclosed."""


class RequestGoneError(UnknownRequestError):
    """The request was pruned. Clients get the same answer as for an unknown id."""


class UnloggedRequestError(UnknownRequestError):
    """The record of the request was dropped, so nothing can be logged about it."""


class TooOftenError(MessplusError):
    """A key requests more than its share; ``retry_seconds`` is the time until it may retry."""

    def __init__(self, reason: str, retry_seconds: float) -> None:
        self.retry_seconds = retry_seconds
        super().__init__(reason)


class TooManyVerdictsError(MessplusError):
    """A call has been judged so often that no further verdict is accepted."""


WAY_ON = (
    "LiteLLM starts without it once `litellm_messplus.plugin.instance` is taken out of "
    "`litellm_settings.callbacks`"
)


def end_process(error: Exception) -> NoReturn:
    """Print one line in place of a traceback, and end the process, so that no worker is
    restarted.

    The line says what is wrong. For an error that nobody foresaw it says where, too: an operator
    can report it. It ends with the way on, since the proxy serves users who need no routing.
    """
    reason = in_one_line(error)
    print(f"\nmessplus: the plugin cannot start: {reason}. {WAY_ON}\n", file=sys.stderr)
    sys.stderr.flush()
    os._exit(1)


def in_one_line(error: Exception) -> str:
    """Format an error as one line, with the place of one that nobody foresaw."""
    reason = str(error)
    if not isinstance(error, MessplusError):  # a bug, or what only a traceback would tell
        *_, frame = traceback.extract_tb(error.__traceback__)
        reason = f"{type(error).__name__} at {frame.filename}:{frame.lineno}: {reason}"
    return " ".join(reason.split())


# The error of a call, as it is logged.

LONGEST_ERROR = 2000
"""The most characters of an error that are logged."""
REFUSALS = frozenset({400, 413, 422})
"""The HTTP statuses of a request that is itself at fault: malformed, too long, or against the
provider's policy."""
REFUSED = "refused with "


def error_words(error: BaseException) -> str:
    """Format an error for the log, with a prefix if the request itself was refused."""
    status = getattr(error, "status_code", None)
    refused = f"{REFUSED}{status}: " if status in REFUSALS else ""
    return f"{refused}{type(error).__name__}: {error}"[:LONGEST_ERROR]
