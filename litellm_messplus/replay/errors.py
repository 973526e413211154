"""What a user of `messplus replay` can get wrong."""

from litellm_messplus.errors import MessplusError


class ReplayError(MessplusError):
    """A recording or an option cannot be used; the message says which, and what is allowed."""
