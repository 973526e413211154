"""Checks that any encoder must pass, others' own too.

Each raises AssertionError with what was expected, or what the encoder itself raises.
"""

import time
from collections.abc import Callable

import numpy as np

from litellm_messplus.core.encoder import Conversation, Encoder, FeatureRows, Turn

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
LONG = TEXTS["100,000 characters"]
LAST = "And the last question: why is the sky blue?"
TOLERANCE = 1e-4
"""Share of the largest feature that the order of additions in a batch may change."""
MILLISECONDS = 5.0
"""Longest time for which an event loop may be blocked."""


def check_encoder(make_encoder: Callable[[], Encoder]) -> None:
    """Check an encoder. ``make_encoder`` is called twice, and must load or build anew each time."""
    encoder, fresh = make_encoder(), make_encoder()
    assert isinstance(encoder.name, str), f"name must be a str, is {encoder.name!r}"
    assert 0 < len(encoder.name) <= 255, "name must have 1 to 255 characters"
    assert type(encoder.dimension) is int, f"dimension must be an int, is {encoder.dimension!r}"
    assert encoder.dimension > 0, f"dimension must be above 0, is {encoder.dimension}"
    assert type(encoder.is_fast) is bool, f"is_fast must be a bool, is {encoder.is_fast!r}"
    _check_features(encoder)
    _check_reading(encoder)
    if encoder.is_fast:
        best = min(_seconds(lambda: _features(encoder, LONG)) for _ in range(10)) * 1000.0
        assert best <= MILLISECONDS, f"is_fast, but took {best:.1f} ms; at most {MILLISECONDS} ms"
    assert fresh.name == encoder.name, f"a fresh one is named {fresh.name}, not {encoder.name}"
    texts = list(TEXTS.values())
    is_same = np.array_equal(fresh.encode(texts), encoder.encode(texts))
    assert is_same, "a fresh encoder of that name must give the same features"


def _check_features(encoder: Encoder) -> None:
    """Check that any text has finite features, which depend on it alone, and never change."""
    for title, text in TEXTS.items():
        first = encoder.encode([text])
        _assert_rows(encoder, first, 1, title)
        kept = first.tobytes()
        encoder.encode(["something else entirely"])
        assert first.tobytes() == kept, f"{title}: rows must not change once they are returned"
        assert encoder.encode([text]).tobytes() == kept, f"{title}: features must not change"
    _assert_rows(encoder, encoder.encode([]), 0, "no texts")
    alone = {title: encoder.encode([text])[0] for title, text in TEXTS.items()}
    assert not _close(alone["a question"], alone["code"]), "unlike texts need unlike features"
    for titles in (list(TEXTS), list(reversed(TEXTS))):
        together = encoder.encode([TEXTS[title] for title in titles])
        _assert_rows(encoder, together, len(titles), "a batch")
        for title, row in zip(titles, together, strict=True):
            assert _close(row, alone[title]), f"{title}: features must not depend on the batch"


def _check_reading(encoder: Encoder) -> None:
    """Check that any conversation is read, a short one whole, and always all of its last turn."""
    said = (Turn("system", "Be brief."), Turn("user", "Hello."), Turn("user", LAST))
    short = encoder.read(Conversation(said, ("search: web",)))
    for words in ("search: web", "Be brief.", "Hello.", LAST):
        assert words in short, f"a short conversation must be read whole, {words!r} is missing"
    assert short.rindex(LAST) > short.index("Hello."), "the last turn must be read last"
    assert np.isfinite(encoder.encode([encoder.read(Conversation(()))])).all(), "without turns"
    for title, text in TEXTS.items():
        garbled = Conversation((Turn("tool", text),), (text,))
        read = encoder.read(garbled)
        assert read == encoder.read(garbled), f"{title}: what is read must not change"
        assert np.isfinite(encoder.encode([read])).all(), f"{title}: features must be finite"
        earlier = (Turn("system", "Be brief. " * 5_000), Turn("assistant", text))
        long, other = (
            encoder.read(Conversation((*earlier, Turn("user", last)))) for last in (LAST, "Stop.")
        )
        assert LAST in long, f"after {title}: the last turn must be read whole"
        assert "Stop." in other, f"after {title}: the last turn must be read whole"
        rows = encoder.encode([long, other])
        assert not _close(rows[0], rows[1]), f"after {title}: the last turn must count"


def _assert_rows(encoder: Encoder, rows: FeatureRows, count: int, title: str) -> None:
    shape = (count, encoder.dimension)
    assert rows.shape == shape, f"{title}: shape must be {shape}, is {rows.shape}"
    assert rows.dtype == np.float32, f"{title}: dtype must be float32, is {rows.dtype}"
    assert np.isfinite(rows).all(), f"{title}: every feature must be finite"


def _close(one: FeatureRows, other: FeatureRows) -> bool:
    largest = max(float(np.abs(one).max()), float(np.abs(other).max()))
    return bool(np.abs(one - other).max() <= TOLERANCE * largest)


def _features(encoder: Encoder, text: str) -> FeatureRows:
    return encoder.encode([encoder.read(Conversation.of_text(text))])


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started
