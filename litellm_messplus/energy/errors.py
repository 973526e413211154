"""What a user of `messplus profile` can meet."""

from litellm_messplus.errors import MessplusError


class NotMeasuredError(MessplusError):
    """No sensor counted anything. That is not zero joules; the message says what to do."""


class EndpointError(MessplusError):
    """The endpoint did not answer a request as a profile needs it."""


class FitError(MessplusError):
    """The windows do not say what a token costs; the message says why."""
