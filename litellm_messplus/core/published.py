"""The state of zoos as the learner publishes it: what decisions need, without what learning needs.

A state of three models has 1.6 MB, mostly covariances; its view has about 60 kB. The learner makes
the views of all zoos at one position of the log into one immutable publication.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.core.catalog import Catalog
from litellm_messplus.core.head import Arrays
from litellm_messplus.core.zoo_state import ExpectedUse, ZooState

MAGIC = b"messplus state 1\n"
"""The first bytes of a publication: the version of its format."""
ALIGNED = 8
"""Each array begins at a multiple of so many bytes."""


class View(NamedTuple):
    """The state of one zoo for decisions: what is JSON, and the arrays by name. ``fingerprint`` is
    that of the settings that the fold depends on."""

    fingerprint: str
    plain: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Publication:
    """The states of all zoos after the record at ``position``, published by the learner of an
    ``epoch``. ``taken`` is the newest number of each worker's batches that the states include;
    ``workers`` is the number of workers that decide."""

    position: int
    epoch: int
    workers: int = 1
    taken: Mapping[str, int] = field(default_factory=dict)
    views: Mapping[str, View] = field(default_factory=dict)

    def pack(self) -> bytes:
        """Return it as bytes: a header of JSON, then the arrays as they are in memory."""
        zoos: dict[str, Any] = {}
        parts, place = list[bytes](), 0
        for name, view in self.views.items():
            arrays = {}
            for key, array in view.arrays.items():
                data = np.ascontiguousarray(array).tobytes()
                arrays[key] = [array.dtype.str, array.shape, place]
                parts.append(data.ljust(-(-len(data) // ALIGNED) * ALIGNED, b"\0"))
                place += len(parts[-1])
            zoos[name] = [view.fingerprint, view.plain, arrays]
        header = [self.position, self.epoch, self.workers, dict(self.taken), zoos]
        text = json.dumps(header).encode()
        head = MAGIC + len(text).to_bytes(8, "little") + text
        return b"".join([head.ljust(-(-len(head) // ALIGNED) * ALIGNED, b"\0"), *parts])

    @classmethod
    def unpack(cls, data: bytes) -> "Publication":
        """Read the bytes of ``pack``; the arrays share their memory, and are read-only.

        Raises ValueError for other bytes.
        """
        start = len(MAGIC) + 8
        if data[: len(MAGIC)] != MAGIC:
            raise ValueError("not a published state of this version")
        end = start + int.from_bytes(data[len(MAGIC) : start], "little")
        base = -(-end // ALIGNED) * ALIGNED
        position, epoch, workers, taken, zoos = json.loads(data[start:end])
        views: dict[str, View] = {}
        for name, (fingerprint, plain, arrays) in zoos.items():
            found = {
                key: np.ndarray(shape, kind, data, base + place)
                for key, (kind, shape, place) in arrays.items()
            }
            views[name] = View(fingerprint, plain, found)
        return cls(position, epoch, workers, taken, views)


def view_of(state: ZooState) -> tuple[dict[str, Any], Arrays]:
    """Return what decisions need of a state."""
    policy, arrays = state.policy.view()
    plain = {
        "requests": dict(state.requests),
        "estimators": state.plain_means(),
        "catalog": state.catalog.plain(),
        "policy": policy,
    }
    return plain, {**arrays, **state.lengths.view(), **state.use.arrays()}


def load_view(state: ZooState, view: View) -> None:
    """Make a state decide as the one that gave the view. It is not a fold from here on: nothing may
    be applied to it."""
    plain, arrays = view.plain, view.arrays
    state.catalog = Catalog.of(plain["catalog"])
    names = tuple(plain["estimators"])
    if names != state.candidates:  # in that order, which is the arrays' order
        kept = [mine for mine, name in zip(state.candidates, names, strict=False) if mine == name]
        state.become(kept if names[: len(kept)] == tuple(kept) else [])
        state.become(names)
    state.requests = Counter(plain["requests"])
    state.load_means(plain["estimators"])
    state.policy.load_view(plain["policy"], arrays)
    state.lengths.load_view(arrays)
    state.use = ExpectedUse.load(arrays)
