"""The state of a zoo as bytes, exactly: what is loaded goes on as if it had never been saved."""

import io
import json
from hashlib import sha256
from typing import Any
from zipfile import BadZipFile

import numpy as np

from litellm_messplus.learning.zoo_state import ZooState
from litellm_messplus.zoo import Zoo

FORMAT = 7
"""Changes whenever the same log would fold into another state, or the bytes read differently."""


def fingerprint(zoo: Zoo, encoder: str) -> str:
    """Of everything beside the log that the state depends on; 64 hexadecimal digits.

    The promises are not part of it: the log keeps the alpha that was in force.
    """
    settings = zoo.settings
    parts = [
        FORMAT,
        encoder,
        zoo.candidates,
        settings.policy,
        settings.labels.precedence,
        settings.learning_rate,
        settings.momentum,
        settings.weight_decay,
        settings.exploration_wait_seconds,
    ]
    return sha256(json.dumps(parts).encode()).hexdigest()


def dump(state: ZooState) -> bytes:
    """All of the state, without pickling."""
    plain = {
        "requests": state.requests,
        "estimators": {
            name: [[mean.value, mean.count] for mean in estimator.means()]
            for name, estimator in state.estimators.items()
        },
        "policy": state.policy.plain(),
    }
    arrays = state.policy.arrays() | state.lengths.arrays()
    buffer = io.BytesIO()
    written = np.frombuffer(json.dumps(plain).encode(), dtype=np.uint8)
    np.savez(buffer, allow_pickle=False, plain=written, **arrays)
    return buffer.getvalue()


def load(data: bytes, empty: ZooState) -> ZooState:
    """Fill an empty state of the same fingerprint with what ``dump`` wrote.

    Raises ValueError for bytes that are no such state.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        plain: dict[str, Any] = json.loads(arrays.pop("plain").tobytes())
    except (BadZipFile, EOFError, KeyError) as error:
        raise ValueError(f"not a snapshot: {error}") from error
    if set(plain["estimators"]) != set(empty.estimators):
        raise ValueError(f"a snapshot of other candidates: {sorted(plain['estimators'])}")
    empty.requests.update(plain["requests"])
    for name, means in plain["estimators"].items():
        for mean, (value, count) in zip(empty.estimators[name].means(), means, strict=True):
            mean.value, mean.count = value, count
    empty.policy.load(plain["policy"], arrays)
    empty.lengths.load(arrays)
    return empty
