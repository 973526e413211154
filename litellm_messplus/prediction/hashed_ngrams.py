"""The embedded encoder: signed hashed word 1- and 2-grams and the prompt's shape; no download.

Research measured it level with sentence embeddings of MiniLM on recorded zoos, at a fraction of
the time.
"""

import math
import re
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.prediction.encoder import Features

NGRAM_BUCKETS = 124
SHAPE_FEATURES = 4
HEAD_CHARACTERS = 1500
TAIL_CHARACTERS = 4500
"""Read of a longer prompt: its beginning and, where the question usually stands, its end."""
MOST_WORDS = 1000
LONGEST_WORD = 64

_WORD = re.compile(r"\w+|[^\w\s]")
_GOLDEN = np.uint64(0x9E37_79B9_7F4A_7C15)
_PAIR = np.uint64(0x85EB_CA6B)


class HashedNgrams:
    """``dimension`` = 124 n-gram buckets of unit length, then four numbers of the text's shape."""

    name = "hashed-ngrams-1"
    dimension = NGRAM_BUCKETS + SHAPE_FEATURES

    def encode(self, text: str) -> Features:
        """Shape (128,). Any text is accepted; one without words gives the zero vector."""
        features = np.zeros(self.dimension, dtype=np.float32)
        words = _WORD.findall(_bounded(text).lower())[:MOST_WORDS]
        if words:
            features[:NGRAM_BUCKETS] = _ngrams(words)
            features[NGRAM_BUCKETS:] = _shape(text, words)
        return features


def _bounded(text: str) -> str:
    if len(text) <= HEAD_CHARACTERS + TAIL_CHARACTERS:
        return text
    return text[:HEAD_CHARACTERS] + " " + text[-TAIL_CHARACTERS:]


def _ngrams(words: list[str]) -> NDArray[np.float64]:
    """Signed counts of words and of neighbouring pairs, scaled to length 1.

    crc32 and not ``hash``, which differs from process to process; multiplied and folded, because
    the low bits of a checksum are no hash yet.
    """
    codes = [crc32(word[:LONGEST_WORD].encode("utf-8", "surrogatepass")) for word in words]
    single = np.array(codes, dtype=np.uint64) + np.uint64(1)
    mixed = np.concatenate((single, single[:-1] * _PAIR + single[1:])) * _GOLDEN
    mixed ^= mixed >> np.uint64(29)
    mixed *= _GOLDEN
    buckets = ((mixed >> np.uint64(32)) % np.uint64(NGRAM_BUCKETS)).astype(np.intp)
    signs = 1.0 - 2.0 * (mixed >> np.uint64(63)).astype(np.float64)
    counts = np.bincount(buckets, weights=signs, minlength=NGRAM_BUCKETS).astype(np.float64)
    length = math.sqrt(float(counts @ counts))
    return counts / length if length > 0.0 else counts


def _shape(text: str, words: list[str]) -> tuple[float, float, float, float]:
    """Length, mean length of a word, share of single characters, and whether it asks; each
    between 0 and about 1."""
    count = len(words)
    return (
        math.log1p(min(len(text), 1_000_000)) / 16.0,
        min(sum(map(len, words)) / count, 20.0) / 10.0,
        sum(1 for word in words if len(word) == 1) / count,
        0.5 if "?" in words else 0.0,
    )
