"""How much of a prompt a bounded encoder takes in."""

from dataclasses import dataclass

from litellm_messplus.prediction.conversation import Conversation, middle_left_out, shortened


@dataclass(frozen=True, slots=True)
class Window:
    """At most ``characters``, of which at most ``head`` are the beginning's."""

    characters: int
    head: int

    def read(self, conversation: Conversation) -> str:
        return shortened(conversation, self.characters, self.head)

    def of(self, text: str) -> str:
        """Any text as a tokenizer takes it: bounded, and lone surrogates replaced by `?`."""
        bounded = middle_left_out(text, self.characters, self.head)
        return bounded.encode("utf-8", "replace").decode("utf-8")


OF_256_TOKENS = Window(characters=4 * 256, head=256)
"""About four characters make a token of English; of denser text the tokenizer keeps the end."""
