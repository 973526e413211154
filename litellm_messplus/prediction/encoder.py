"""The encoder protocol: what turns a conversation into features, in two steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

# What a model is asked, as the encoders see it: the turns in order, and the tools on offer.


@dataclass(frozen=True, slots=True)
class Turn:
    """One message: who speaks (`system`, `user`, `assistant`, `tool`), and the words.

    What is no text (an image, a sound) stands in the text by its type, as `[image_url]`.
    """

    role: str
    text: str


@dataclass(frozen=True)
class Conversation:
    """A whole prompt. ``tools`` are the names and descriptions of what may be called; ``images``
    and ``attachments`` count what came along without words, ``asks_json`` is whether the answer
    must be JSON."""

    turns: tuple[Turn, ...]
    tools: tuple[str, ...] = ()
    images: int = 0
    attachments: int = 0
    asks_json: bool = False

    @cached_property
    def text(self) -> str:
        """Everything the model reads, in order: tools, then the turns, the system's first."""
        return "\n".join([*self.tools, *(turn.text for turn in self.turns)])

    @property
    def last(self) -> str:
        """The words of the last turn: what is to be answered now."""
        return self.turns[-1].text if self.turns else ""

    @classmethod
    def of_text(cls, text: str) -> "Conversation":
        """Make a conversation of a prompt that is one text, as in a text completion or a
        recording."""
        return cls((Turn("user", text),))


def shortened(conversation: Conversation, characters: int, head: int) -> str:
    """Shorten the text to at most ``characters``: the last turn is kept whole before all else.

    What room it leaves goes to the beginning (at most ``head`` characters of it, where tools and
    the system's words stand) and then to what comes just before the last turn. A last turn that is
    longer than all the room stands alone, by ``head`` characters of its beginning and its end.
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
"""A vector of shape (dimension,); float32, because that is what the log stores."""

FeatureRows = NDArray[np.float32]
"""Vectors of several texts, shape (texts, dimension)."""


class Encoder(Protocol):
    """A deterministic encoder: the log keeps the features, and nothing that they came from.

    ``name`` (at most 255 characters) changes whenever the meaning of the features does: what was
    logged under another name is not learned from. ``is_fast`` says that encoding takes well under
    a millisecond, so that the proxy does it in its event loop; any other encoder runs in a process
    of its own, several prompts at once, one batch after the other.
    """

    name: str
    dimension: int
    is_fast: bool

    def read(self, conversation: Conversation) -> str:
        """Return the text that is encoded: shortened to what the encoder takes in, the last turn
        whole wherever it fits. Cheap; equal texts have equal features."""
        ...

    def encode(self, texts: Sequence[str]) -> FeatureRows:
        """Encode any texts, empty, huge or garbled ones too; a text's features do not depend on the
        others in the batch (beyond float32 rounding)."""
        ...
