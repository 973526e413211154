"""The errors that a user of the plugin can meet."""


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


class JournalFullError(MessplusError):
    """The database has been away for so long that nothing more is held for it."""


class UnknownRequestError(MessplusError):
    """No request is known under the id that was given."""


class NotYourRequestError(MessplusError):
    """The request exists, but was made with another key."""
