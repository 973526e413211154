"""What the log keeps of the conversation that a request is part of."""

from litellm_messplus.conversations.rule import Hold
from litellm_messplus.rows import column, public, record


@record
class LinePlace:
    """The place of a request in its line, where conversations are held."""

    conversation: str = public(
        "The id of the request that began its conversation; NULL where none are held.", size=64
    )
    line: str = public("The id of the request that began its line: one prompt that grows.", size=64)
    prefix: str = column(
        "Keyed digest of its whole prompt, with which the prompts that go on from it begin.",
        size=32,
    )
    turn: int = public("Its number in the line, from 1.")
    hold: Hold | None = public(
        "Why it was held, or why it was held no longer; NULL where it was decided.",
        size=16,
        default=None,
    )


@record
class CountedAs:
    """The count of a request, where the promise counts conversations."""

    counted_with: str | None = public(
        "The first request of its conversation, where the promise counts conversations: that "
        "one stands for it, and has the verdict. NULL of a request that counts itself.",
        size=64,
        default=None,
    )
    session: str | None = column(
        "Keyed digest of the session that the client named, where the promise counts "
        "conversations; NULL where it named none.",
        size=32,
        default=None,
    )
