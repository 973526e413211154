"""Small recordings, made here: seeded, so that every test run sees the same."""

import csv
import gzip
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from litellm_messplus.core.encoder import Conversation, FeatureRows
from litellm_messplus.replay.recording import Prompts, Recording

RATES = {"small": 0.5, "medium": 0.7, "large": 0.9}
COSTS = {"small": 1.0, "medium": 4.0, "large": 20.0}


class LengthEncoder:
    """An encoder of dimension 2: a constant, and the length of the text."""

    name = "length-1"
    dimension = 2
    is_fast = True

    def read(self, conversation: Conversation) -> str:
        return conversation.text

    def encode(self, texts: Sequence[str]) -> FeatureRows:
        return np.array([[1.0, len(text) / 100.0] for text in texts], dtype=np.float32)


ENCODER = LengthEncoder()


def recording(
    satisfied: Any,
    cost: Any,
    *,
    models: Sequence[str] | None = None,
    name: str = "made",
    unit: str = "J",
) -> Recording:
    """Of two matrices (requests, models); every request has a prompt of its own."""
    outcomes = np.asarray(satisfied, dtype=np.float64)
    requests, width = outcomes.shape
    texts = [f"request {number}" for number in range(requests)]
    return Recording(
        name=name,
        models=tuple(models or (f"m{place}" for place in range(width))),
        unit=unit,
        prompts=Prompts.encode(texts, ENCODER),
        prompt=np.arange(requests),
        satisfied=outcomes,
        cost=np.asarray(cost, dtype=np.float64),
    )


def synthetic(requests: int = 200, seed: int = 0, name: str = "synthetic") -> Recording:
    """Three models, the dearer the better; costs vary by a tenth."""
    generator = np.random.default_rng(seed)
    satisfied = generator.random((requests, 3)) < list(RATES.values())
    cost = np.array(list(COSTS.values())) * generator.uniform(0.9, 1.1, (requests, 3))
    return recording(satisfied, cost, models=tuple(RATES), name=name)


def rows(requests: int = 5) -> list[dict[str, Any]]:
    """Rows of a file with two models, in joules; the first prompt repeats."""
    return [
        {
            "doc_id": number,
            "prompt": "again, and again" if number < 2 else f'say "{number}",\nplease',
            "cheap|satisfied": number % 2,
            "cheap|energy_j": 1.5 + number,
            "dear|satisfied": 1,
            "dear|energy_j": 10.0,
        }
        for number in range(requests)
    ]


def write_csv(path: Path, content: Sequence[dict[str, Any]]) -> Path:
    """A CSV; in gzip where the path says so."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(content[0]))
    writer.writeheader()
    writer.writerows(content)
    data = text.getvalue().encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def write_synthetic(path: Path, made: Recording) -> Path:
    """A recording of distinct prompts as a CSV."""
    content = [
        {"prompt": made.prompts.texts[made.prompt[row]]}
        | {
            f"{model}|{kind}": float(values[row, place])
            for place, model in enumerate(made.models)
            for kind, values in (("satisfied", made.satisfied), ("energy_j", made.cost))
        }
        for row in range(len(made))
    ]
    return write_csv(path, content)
