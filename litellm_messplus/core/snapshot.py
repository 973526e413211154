"""The state of a zoo as bytes, exactly: a loaded state continues as if it had never been saved."""

import io
import json
from hashlib import sha256
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.core.answer import ANSWER_VERSION
from litellm_messplus.core.catalog import Catalog
from litellm_messplus.core.head import Arrays
from litellm_messplus.core.predictor import Predictor
from litellm_messplus.core.surface import VERSION
from litellm_messplus.core.zoo_state import ExpectedUse, ZooState
from litellm_messplus.settings.zoo import Zoo

FORMAT = 18
"""Format version: changes when the same log folds into another state, or the bytes change."""


def settings_of(zoo: Zoo, encoder: str) -> dict[str, Any]:
    """Return all that the state depends on except the log, under the operator's names.

    The promises are not part of it: the log holds the alpha in force.
    """
    settings = zoo.settings
    return {
        "format": FORMAT,
        "surface": VERSION,
        "answers": ANSWER_VERSION,
        "encoder": encoder,
        "candidates": list(zoo.configured),
        "policy": settings.policy,
        "labels.precedence": list(settings.labels.precedence),
        "learning_rate": settings.learning_rate,
    }


def fingerprint(zoo: Zoo, encoder: str) -> str:
    """Hash these settings to 64 hexadecimal digits."""
    parts = list(settings_of(zoo, encoder).values())
    return sha256(json.dumps(parts).encode()).hexdigest()


def dump(state: ZooState) -> bytes:
    """Dump all of the state, without pickling."""
    return pack(*taken(state))


def taken(state: ZooState) -> tuple[dict[str, Any], Arrays]:
    """Copy the state: entries folded in later do not change the copy."""
    plain = {
        "requests": dict(state.requests),
        "estimators": state.plain_means(),
        "policy": state.policy.plain(),
    }
    if not state.catalog.is_empty:  # else the format is unchanged
        plain["catalog"] = state.catalog.plain()
    arrays = state.policy.arrays() | state.lengths.arrays() | state.use.arrays()
    return plain, {name: array.copy() for name, array in arrays.items()}


def pack(plain: dict[str, Any], arrays: Arrays) -> bytes:
    """Pack what ``taken`` returned into bytes, in any thread."""
    buffer = io.BytesIO()
    written = np.frombuffer(json.dumps(plain).encode(), dtype=np.uint8)
    np.savez(buffer, allow_pickle=False, plain=written, **arrays)
    return buffer.getvalue()


def predictor_of(data: bytes) -> Predictor | None:
    """Read the predictor of a state under policy `adaptive`, without its configuration, for
    inspection; None for another policy.

    Raises ValueError or KeyError for bytes that are no state of this version.
    """
    plain, arrays = _read(data)
    if "predictor" not in plain["policy"]:
        return None
    found = Predictor(list(plain["estimators"]), len(arrays["average_words"]))
    found.load(plain["policy"]["predictor"], arrays)
    return found


def _read(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        return json.loads(arrays.pop("plain").tobytes()), arrays
    except (BadZipFile, EOFError, KeyError) as error:
        raise ValueError(f"not a snapshot: {error}") from error


def load(data: bytes, empty: ZooState) -> ZooState:
    """Fill an empty state of the same fingerprint with what ``dump`` wrote.

    Raises ValueError for bytes that are no such state.
    """
    plain, arrays = _read(data)
    if "catalog" in plain:
        empty.catalog = Catalog.of(plain["catalog"])
        empty.become(list(plain["estimators"]))
    if set(plain["estimators"]) != set(empty.estimators):
        raise ValueError(f"a snapshot of other candidates: {sorted(plain['estimators'])}")
    empty.requests.update(plain["requests"])
    empty.load_means(plain["estimators"])
    empty.policy.load(plain["policy"], arrays)
    empty.lengths.load(arrays)
    empty.use = ExpectedUse.load(arrays)
    return empty
