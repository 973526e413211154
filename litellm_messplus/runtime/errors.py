"""The errors that a user of the plugin can meet, and the end of a start that cannot go on."""

import os
import sys
from typing import NoReturn


class MessplusError(Exception):
    """Base of every error that the plugin raises on purpose."""


class ConfigurationError(MessplusError):
    """The configuration cannot be honoured, so the proxy must not start.

    The message names the key, what was given, and what is allowed.
    """

    def __init__(self, key: str, given: object, allowed: str) -> None:
        self.key = key
        self.given = given
        self.allowed = allowed
        super().__init__(f"{key}: given {given!r}; allowed: {allowed}")


class DatabaseAwayError(ConfigurationError):
    """The database does not answer now: it may later, without any change of the configuration."""


class JournalFullError(MessplusError):
    """The database has been away for so long that nothing more is held for it."""


class NotWrittenError(MessplusError):
    """The record was withdrawn before it was written, and never will be."""


class UnsettledError(MessplusError):
    """The transaction that may have written the record does not end."""


class BrokenLogError(MessplusError):
    """The database is there, and what it holds is no log; the message says what to do."""


class UnknownRequestError(MessplusError):
    """No request of the caller's is known under the id that was given. Whether another key has one
    is told to nobody."""


class RequestGoneError(UnknownRequestError):
    """The request was pruned. Clients get the same answer as for an id that nobody knows."""


class UnloggedRequestError(UnknownRequestError):
    """The record of the request was dropped, so that nothing can be logged about it."""


class TooOftenError(MessplusError):
    """A key asks for more than its share; ``retry_seconds`` says when to come again."""

    def __init__(self, reason: str, retry_seconds: float) -> None:
        self.retry_seconds = retry_seconds
        super().__init__(reason)


class CountsRequestsError(MessplusError):
    """A verdict on a conversation, where the promise of that zoo counts requests."""


class TooManyVerdictsError(MessplusError):
    """A call has been judged so often that no further verdict is taken."""


def end_process(reason: str) -> NoReturn:
    """Print one message in place of a traceback, and end the process, so that no worker is started
    again."""
    print(f"\nmessplus: {reason}\n", file=sys.stderr)
    sys.stderr.flush()
    os._exit(1)
