"""The encoder protocol: from a conversation to features, in two steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.runtime.stand_ins import once

# The input of a model as the encoders see it: the turns in order, and the available tools.


@dataclass(frozen=True, slots=True)
class Turn:
    """One message: its role (`system`, `user`, `assistant`, `tool`), and its text.

    Content that is not text (an image, a sound) is represented by its type, as `[image_url]`.
    """

    role: str
    text: str


@dataclass(frozen=True)
class Conversation:
    """A whole prompt. ``tools`` are the names and descriptions of the callable tools; ``images``
    and ``attachments`` count the content that is not text, ``asks_json`` is whether the answer
    must be JSON."""

    turns: tuple[Turn, ...]
    tools: tuple[str, ...] = ()
    images: int = 0
    attachments: int = 0
    asks_json: bool = False

    @once
    def text(self) -> str:
        """The whole input of the model, in order: tools, then the turns, the system's first."""
        return "\n".join([*self.tools, *[turn.text for turn in self.turns]])

    @once
    def last(self) -> str:
        """The text of the last turn, which is to be answered now."""
        return self.turns[-1].text if self.turns else ""

    @classmethod
    def of_text(cls, text: str) -> "Conversation":
        """Make a conversation of a prompt that is one text, as in a text completion or a
        recording."""
        return cls((Turn("user", text),))


def shortened(conversation: Conversation, characters: int, head: int) -> str:
    """Shorten the text to at most ``characters``: the last turn is kept whole before all else.

    The remaining room goes to the beginning (at most ``head`` characters of it, with the tools and
    the system's text) and then to the text just before the last turn. A last turn that is longer
    than ``characters`` stands alone, as ``head`` characters of its beginning, and its end.
    """
    text, last = conversation.text, conversation.last
    if len(text) <= characters:
        return text
    room = characters - len(last) - 1
    if room <= 0:
        return middle_left_out(last, characters, head)
    earlier = text[: len(text) - len(last) - 1]
    return middle_left_out(earlier, room, head) + "\n" + last


def middle_left_out(text: str, characters: int, head: int) -> str:
    """Cut a text to at most ``characters``: ``head`` of its beginning, a space, and its end."""
    if len(text) <= characters:
        return text
    tail = characters - head - 1
    if tail <= 0:
        return text[:characters]
    return text[:head] + " " + text[-tail:]


Features = NDArray[np.float32]
"""A vector of shape (dimension,); float32, as in the log."""

FeatureRows = NDArray[np.float32]
"""Vectors of several texts, shape (texts, dimension)."""


class EncoderFacts(Protocol):
    """The facts about an encoder that learning from its features needs.

    ``name`` (at most 255 characters) changes whenever the meaning of the features does: features
    logged under another name are not learned from. ``is_fast`` states that encoding takes well
    under a millisecond, so that the proxy does it in its event loop; any other encoder runs in a
    thread, several prompts at once, one batch after the other.
    """

    name: str
    dimension: int
    is_fast: bool


class Encoder(EncoderFacts, Protocol):
    """A deterministic encoder: the log keeps the features, and not the text that they came from."""

    def read(self, conversation: Conversation) -> str:
        """Return the text to encode: shortened to the encoder's limit, the last turn whole whenever
        it fits. Cheap; equal texts have equal features."""

    def encode(self, texts: Sequence[str]) -> FeatureRows:
        """Encode any texts, including empty, huge or garbled ones; a text's features do not depend
        on the others in the batch (beyond float32 rounding)."""
