"""Checks of an encoder; `docs/encoders.md` shows how to run them on your own.

Every check raises AssertionError with what was expected, or the encoder's own exception.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from hashlib import shake_128

import numpy as np

from litellm_messplus.prediction.encoder import Conversation, Encoder, FeatureRows, Turn

TEXTS = {
    "a question": "What is 17 + 25?\nAnswer in one word, please.",
    "other writing": "Größe: 你好, мир! \U0001f600 ﷽ e\u0301",
    "code": "def f(x):\n\treturn {'a': [x ** 2 for _ in range(10)]}\r\n",
    "an empty text": "",
    "spaces alone": " \n\t  ",
    "control characters": "\x00\x01\x1b[31m\x7f\x85 word \x00",
    "lone surrogates": "\ud800 word \udfff\udc00",
    "a tokenizer's own marks": "[CLS] <s> </s> <|endoftext|> [PAD] [MASK]",
    "100,000 characters": "begin " * 10_000 + "the end " * 5_000,
    "100,000 characters in one word": "a" * 100_000,
}
LAST = "And the last question: why is the sky blue?"
TOLERANCE = 1e-4
"""Share of the largest feature that the order of additions in a batch may change."""
MILLISECONDS = 5.0
"""Longest time for which an event loop may be blocked."""


def has_its_members(encoder: Encoder) -> None:
    """Check for a name that fits the log's column, a dimension, and ``is_fast``."""
    assert isinstance(encoder.name, str), f"name must be a str, is {encoder.name!r}"
    assert 0 < len(encoder.name) <= 255, "name must have 1 to 255 characters"
    assert type(encoder.dimension) is int, f"dimension must be an int, is {encoder.dimension!r}"
    assert encoder.dimension > 0, f"dimension must be above 0, is {encoder.dimension}"
    assert type(encoder.is_fast) is bool, f"is_fast must be a bool, is {encoder.is_fast!r}"


def gives_finite_rows(encoder: Encoder) -> None:
    """Check that any text gives a row of finite float32, of the stated dimension."""
    for title, text in TEXTS.items():
        rows = encoder.encode([text])
        _assert_rows(encoder, rows, 1, title)
        assert np.isfinite(rows).all(), f"{title}: every feature must be finite"


def accepts_no_texts(encoder: Encoder) -> None:
    """Check that the empty list gives no rows, of the stated dimension."""
    _assert_rows(encoder, encoder.encode([]), 0, "no texts")


def is_deterministic(encoder: Encoder) -> None:
    """Check that the same text has the same features, bit for bit, whatever was encoded in between;
    and that returned arrays are not written to again."""
    for title, text in TEXTS.items():
        first = encoder.encode([text])
        kept = first.tobytes()
        encoder.encode(["something else entirely"])
        assert first.tobytes() == kept, f"{title}: rows must not change once they are returned"
        assert encoder.encode([text]).tobytes() == kept, f"{title}: features must not change"


def ignores_the_batch(encoder: Encoder) -> None:
    """Check that row i depends on text i alone, as if encoded by itself."""
    texts = list(TEXTS.values())
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    for order in (range(len(texts)), range(len(texts) - 1, -1, -1)):
        together = encoder.encode([texts[place] for place in order])
        _assert_rows(encoder, together, len(texts), "a batch")
        for place, row in zip(order, together, strict=True):
            title = list(TEXTS)[place]
            assert _close(row, alone[place]), f"{title}: features must not depend on the batch"


def tells_texts_apart(encoder: Encoder) -> None:
    """Check that two texts with nothing in common have different features."""
    first, second = encoder.encode([TEXTS["a question"], TEXTS["code"]])
    assert not _close(first, second), "unlike texts must have unlike features"


def reads_short_conversations_whole(encoder: Encoder) -> None:
    """Check that every turn and every tool is in the text, in order, the last turn at the end."""
    conversation = Conversation(
        (Turn("system", "Be brief."), Turn("user", "Hello."), Turn("user", LAST)), ("search: web",)
    )
    read = encoder.read(conversation)
    for words in ("search: web", "Be brief.", "Hello.", LAST):
        assert words in read, f"a short conversation must be read whole, {words!r} is missing"
    assert read.rindex(LAST) > read.index("Hello."), "the last turn must be read last"


def reads_the_last_turn_whole(encoder: Encoder) -> None:
    """Check that the last turn is read whole, whatever precedes it, and affects the features."""
    for title, text in TEXTS.items():
        earlier = (Turn("system", "Be brief. " * 5_000), Turn("assistant", text))
        texts = [
            encoder.read(Conversation((*earlier, Turn("user", last)))) for last in (LAST, "Stop.")
        ]
        assert LAST in texts[0], f"after {title}: the last turn must be read whole"
        assert "Stop." in texts[1], f"after {title}: the last turn must be read whole"
        rows = encoder.encode(texts)
        assert not _close(rows[0], rows[1]), f"after {title}: the last turn must count"


def reads_any_conversation(encoder: Encoder) -> None:
    """Check that any conversation can be read: without turns, garbled, huge; that the result can be
    encoded, and that a second reading gives the same."""
    conversations = {"no turns": Conversation(())}
    for title, text in TEXTS.items():
        conversations[title] = Conversation((Turn("tool", text),), (text,))
    for title, conversation in conversations.items():
        read = encoder.read(conversation)
        assert isinstance(read, str), f"{title}: what is read must be a str"
        assert read == encoder.read(conversation), f"{title}: what is read must not change"
        assert np.isfinite(encoder.encode([read])).all(), f"{title}: features must be finite"


def is_as_fast_as_it_says(encoder: Encoder) -> None:
    """Check that an encoder that runs in the event loop blocks it for at most 5 ms, on any
    prompt."""
    if not encoder.is_fast:
        return
    conversation = Conversation.of_text(TEXTS["100,000 characters"])
    best = min(_milliseconds(encoder, conversation) for _ in range(10))
    assert best <= MILLISECONDS, f"is_fast, but took {best:.1f} ms; at most {MILLISECONDS} ms"


CHECKS: tuple[Callable[[Encoder], None], ...] = (
    has_its_members,
    gives_finite_rows,
    accepts_no_texts,
    is_deterministic,
    ignores_the_batch,
    tells_texts_apart,
    reads_short_conversations_whole,
    reads_the_last_turn_whole,
    reads_any_conversation,
    is_as_fast_as_it_says,
)


def check_same(encoder: Encoder, fresh: Encoder) -> None:
    """Check that two encoders built alike have the same name and features, as after a restart."""
    assert fresh.name == encoder.name, f"a fresh one is named {fresh.name}, not {encoder.name}"
    texts = list(TEXTS.values())
    same = np.array_equal(fresh.encode(texts), encoder.encode(texts))
    assert same, "a fresh encoder of that name must give the same features"


def check_encoder(make_encoder: Callable[[], Encoder]) -> None:
    """Run every check. ``make_encoder`` is called twice, and must load or build anew each time."""
    encoder = make_encoder()
    for check in CHECKS:
        check(encoder)
    check_same(encoder, make_encoder())


def _assert_rows(encoder: Encoder, rows: FeatureRows, count: int, title: str) -> None:
    shape = (count, encoder.dimension)
    assert rows.shape == shape, f"{title}: shape must be {shape}, is {rows.shape}"
    assert rows.dtype == np.float32, f"{title}: dtype must be float32, is {rows.dtype}"


def _close(one: FeatureRows, other: FeatureRows) -> bool:
    largest = max(float(np.abs(one).max()), float(np.abs(other).max()))
    return bool(np.abs(one - other).max() <= TOLERANCE * largest)


def _milliseconds(encoder: Encoder, conversation: Conversation) -> float:
    started = time.perf_counter()
    encoder.encode([encoder.read(conversation)])
    return (time.perf_counter() - started) * 1000.0


# An encoder for tests, in this project and in others: features from a hash of the text.


@dataclass(eq=False, repr=False)
class FakeEncoder:
    """Meaningless numbers in [-1, 1), which are the same everywhere for the same text.

    ``delay_seconds`` is slept in every call of `encode`; a ``failure`` is raised there instead of
    an answer, until it is set to None. ``batches`` lists the number of texts of each call.
    """

    dimension: int = 8
    _: KW_ONLY
    is_fast: bool = True
    delay_seconds: float = 0.0
    failure: Exception | None = None

    def __post_init__(self) -> None:
        self.name = f"fake-{self.dimension}"
        self.batches: list[int] = []

    def read(self, conversation: Conversation) -> str:
        return conversation.text

    def encode(self, texts: Sequence[str]) -> FeatureRows:
        """Return features of shape (texts, dimension). Raises ``failure``."""
        self.batches.append(len(texts))
        time.sleep(self.delay_seconds)
        if self.failure is not None:
            raise self.failure
        digests = [self._digest(text) for text in texts]
        numbers = np.frombuffer(b"".join(digests), dtype="<u2").reshape(-1, self.dimension)
        return (numbers / 2**15 - 1.0).astype(np.float32)

    def _digest(self, text: str) -> bytes:
        return shake_128(text.encode("utf-8", "surrogatepass")).digest(2 * self.dimension)
