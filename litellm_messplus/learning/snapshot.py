"""The state of a zoo as bytes, exactly: what is loaded goes on as if it had never been saved."""

import io
import json
from hashlib import sha256
from typing import Any
from zipfile import BadZipFile

import numpy as np

from litellm_messplus.learning.zoo_state import LevelState, ZooState
from litellm_messplus.zoo import Zoo

FORMAT = 1
"""Changes whenever the same log would fold into another state, or the bytes read differently."""


def fingerprint(zoo: Zoo, encoder: str) -> str:
    """Of everything beside the log that the state depends on; 64 hexadecimal digits.

    The promises are not part of it: the log keeps the alpha that was in force.
    """
    settings = zoo.settings
    parts = [
        FORMAT,
        encoder,
        sorted(zoo.candidates),
        settings.policy,
        settings.learning_rate,
        settings.momentum,
        settings.weight_decay,
    ]
    return sha256(json.dumps(parts).encode()).hexdigest()


def dump(state: ZooState) -> bytes:
    """All of the state, without pickling."""
    plain = {
        "candidates": state.heads.candidates,
        "levels": {name: [level.queue, level.requests] for name, level in state.levels.items()},
        "estimators": {
            name: [
                [mean.value, mean.count]
                for mean in (estimator.characters_per_token, estimator.completion_tokens)
            ]
            for name, estimator in state.estimators.items()
        },
    }
    buffer = io.BytesIO()
    np.savez(
        buffer,
        plain=np.frombuffer(json.dumps(plain).encode(), dtype=np.uint8),
        weights=state.heads.weights,
        velocity=state.heads.velocity,
    )
    return buffer.getvalue()


def load(data: bytes, empty: ZooState) -> ZooState:
    """Fill an empty state of the same fingerprint with what ``dump`` wrote.

    Raises ValueError for bytes that are no such state.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            plain: dict[str, Any] = json.loads(arrays["plain"].tobytes())
            weights, velocity = arrays["weights"], arrays["velocity"]
    except (BadZipFile, EOFError, KeyError) as error:
        raise ValueError(f"not a snapshot: {error}") from error
    rows = [plain["candidates"].index(name) for name in empty.heads.candidates]
    empty.heads.weights[:] = weights[rows]
    empty.heads.velocity[:] = velocity[rows]
    for name, (queue, requests) in plain["levels"].items():
        empty.levels[name] = LevelState(queue, requests)
    for name, (characters, completion) in plain["estimators"].items():
        estimator = empty.estimators[name]
        estimator.characters_per_token.value, estimator.characters_per_token.count = characters
        estimator.completion_tokens.value, estimator.completion_tokens.count = completion
    return empty
