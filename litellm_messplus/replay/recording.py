"""A recorded zoo: its models' answers to every request, and the cost of each call."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.core.encoder import Conversation, Encoder, FeatureRows
from litellm_messplus.core.surface import Surface, read_surface
from litellm_messplus.runtime.errors import MessplusError

# Errors that a user of `messplus replay` can make.


class ReplayError(MessplusError):
    """A recording or an option cannot be used; the message names it, and what is allowed."""


Matrix = NDArray[np.float64]
Order = NDArray[np.intp]
AnswerRows = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Prompts:
    """The distinct prompts of a recording, encoded once.

    ``texts`` and ``surfaces`` have one element each, ``features`` one row of float32.
    """

    texts: tuple[str, ...]
    features: FeatureRows
    surfaces: tuple[Surface, ...]

    @classmethod
    def encode(cls, texts: Sequence[str], encoder: Encoder) -> "Prompts":
        """Encode texts that are already distinct."""
        conversations = [Conversation.of_text(text) for text in texts]
        read = encoder.encode([encoder.read(conversation) for conversation in conversations])
        surfaces = tuple(map(read_surface, conversations))
        return cls(tuple(texts), read, surfaces)


@dataclass(frozen=True, eq=False)
class Recording:
    """A recording of requests. ``satisfied`` (0 or 1) and ``cost`` (in ``unit``) have shape
    (requests, models).

    ``prompt`` gives the row in ``prompts`` of every request. ``notes`` are for readers of any
    figure made from it. ``answers`` are the surfaces of the models' answers, of shape (requests,
    models, numbers), if they are to be read.
    """

    name: str
    models: tuple[str, ...]
    unit: str
    prompts: Prompts
    prompt: Order
    satisfied: Matrix
    cost: Matrix
    notes: tuple[str, ...] = ()
    answers: AnswerRows | None = None

    def __len__(self) -> int:
        return len(self.prompt)

    @property
    def largest(self) -> str:
        """The most expensive model of the first request: an operator knows it in advance."""
        return self.models[int(self.first_costs.argmax())]

    @property
    def first_costs(self) -> Matrix:
        """The costs of the first request, shape (models,); the averages if one of those is zero,
        from which no price follows."""
        first: Matrix = self.cost[0]
        average: Matrix = self.cost.mean(axis=0)
        return first if (first > 0.0).all() else average

    def take(self, order: Order) -> "Recording":
        """Take the requests at those places, in that order; the prompts are shared."""
        return replace(
            self,
            prompt=self.prompt[order],
            satisfied=self.satisfied[order],
            cost=self.cost[order],
            answers=None if self.answers is None else self.answers[order],
        )


def concatenate(parts: Sequence[Recording]) -> Recording:
    """Join recordings, one after the other.

    Raises ReplayError if they differ in their models or unit.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    for part in parts[1:]:
        for what, mine, theirs in (
            ("models", first.models, part.models),
            ("unit of cost", first.unit, part.unit),
        ):
            if mine != theirs:
                raise ReplayError(
                    f"{part.name}: {what}: given {theirs!r}; allowed in one stream with "
                    f"{first.name}: {mine!r}"
                )
    starts = np.cumsum([0] + [len(part.prompts.texts) for part in parts[:-1]])
    return replace(
        first,
        name=" + ".join(part.name for part in parts),
        prompts=Prompts(
            tuple(text for part in parts for text in part.prompts.texts),
            np.concatenate([part.prompts.features for part in parts]),
            tuple(surface for part in parts for surface in part.prompts.surfaces),
        ),
        prompt=np.concatenate(
            [part.prompt + start for part, start in zip(parts, starts, strict=True)]
        ),
        satisfied=np.concatenate([part.satisfied for part in parts]),
        cost=np.concatenate([part.cost for part in parts]),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        answers=_joined([part.answers for part in parts]),
    )


def _joined(parts: Sequence[AnswerRows | None]) -> AnswerRows | None:
    """Join the answers of several recordings; None unless all have them."""
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if len(known) == len(parts) else None
