"""A recorded zoo: what the models of it answered to every request, and what each call cost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.prediction.encoder import Conversation, Encoder, FeatureRows
from litellm_messplus.prediction.surface import Surface, read_surface
from litellm_messplus.runtime.errors import MessplusError

# What a user of `messplus replay` can get wrong.


class ReplayError(MessplusError):
    """A recording or an option cannot be used; the message says which, and what is allowed."""


Matrix = NDArray[np.float64]
Order = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Prompts:
    """The distinct prompts of a recording, encoded once.

    ``texts`` and ``characters`` have one element each, ``features`` one row of float32; of
    ``surfaces``, those are None of which a log holds none. A text is empty where only its features
    were kept.
    """

    texts: tuple[str, ...]
    characters: tuple[int, ...]
    features: FeatureRows
    surfaces: tuple[Surface | None, ...]

    @classmethod
    def encode(cls, texts: Sequence[str], encoder: Encoder) -> "Prompts":
        """Encode texts that are distinct already."""
        asked = [Conversation.of_text(text) for text in texts]
        read = encoder.encode([encoder.read(conversation) for conversation in asked])
        surfaces = tuple(map(read_surface, asked))
        return cls(tuple(texts), tuple(map(len, texts)), read, surfaces)


@dataclass(frozen=True, eq=False)
class Recording:
    """A recording of requests. ``satisfied`` (0 or 1) and ``cost`` (in ``unit``) have shape
    (requests, models); NaN where nobody knows, which only a log of served requests holds.

    ``prompt`` gives for every request its row in ``prompts``. ``notes`` are what a reader of any
    figure made from it must know.
    """

    name: str
    models: tuple[str, ...]
    unit: str
    prompts: Prompts
    prompt: Order
    satisfied: Matrix
    cost: Matrix
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.prompt)

    @property
    def largest(self) -> str:
        """The most expensive model of the first request: what an operator could have known
        beforehand."""
        return self.models[int(self.first_costs.argmax())]

    @property
    def first_costs(self) -> Matrix:
        """The costs of the first request, shape (models,); on average where those are not all
        known, or zero, from which no price can be told."""
        first: Matrix = self.cost[0]
        average: Matrix = np.nanmean(self.cost, axis=0)
        return first if (first > 0.0).all() else average

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Whether each outcome is known, verdict and cost; shape (requests, models)."""
        return ~(np.isnan(self.satisfied) | np.isnan(self.cost))

    def known(self) -> "Recording":
        """Keep the requests of which everything is known. Raises ReplayError where there are
        none."""
        places = np.flatnonzero(self.is_known.all(axis=1))
        if not places.size:
            raise ReplayError(
                f"{self.name}: given no request to which every model's answer was judged; allowed: "
                "at least one"
            )
        return self.take(places)

    def take(self, order: Order) -> "Recording":
        """Take the requests at those places, in that order; the prompts are shared."""
        return replace(
            self,
            prompt=self.prompt[order],
            satisfied=self.satisfied[order],
            cost=self.cost[order],
        )


def concatenate(parts: Sequence[Recording]) -> Recording:
    """Join one recording after the other.

    Raises ReplayError where they differ in their models or unit.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    for part in parts[1:]:
        check_same(first, part)
    starts = np.cumsum([0] + [len(part.prompts.texts) for part in parts[:-1]])
    return replace(
        first,
        name=" + ".join(part.name for part in parts),
        prompts=Prompts(
            tuple(text for part in parts for text in part.prompts.texts),
            tuple(count for part in parts for count in part.prompts.characters),
            np.concatenate([part.prompts.features for part in parts]),
            tuple(surface for part in parts for surface in part.prompts.surfaces),
        ),
        prompt=np.concatenate(
            [part.prompt + start for part, start in zip(parts, starts, strict=True)]
        ),
        satisfied=np.concatenate([part.satisfied for part in parts]),
        cost=np.concatenate([part.cost for part in parts]),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )


def check_same(first: Recording, other: Recording) -> None:
    """Check that they are alike. Raises ReplayError where they differ in their models or unit."""
    for what, mine, theirs in (
        ("models", first.models, other.models),
        ("unit of cost", first.unit, other.unit),
    ):
        if mine != theirs:
            raise ReplayError(
                f"{other.name}: {what}: given {theirs!r}; allowed in one stream with "
                f"{first.name}: {mine!r}"
            )
