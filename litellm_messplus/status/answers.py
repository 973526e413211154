"""Findings of the heads that read answers, and what became of the answers that were read.

What the heads know comes from the newest snapshot. The log shows whether answers predicted verdicts
better than the prompts did, which answers were replaced, and what both calls cost.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import RenderableType
from rich.text import Text
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.figures.words import percent
from litellm_messplus.prediction.predictor import Predictor
from litellm_messplus.runtime.terminal import Rows, numbers, whole
from litellm_messplus.runtime.vocabulary import CallRole
from litellm_messplus.status.calibration import BINS, CandidateCalibration, Sums
from litellm_messplus.status.reading import AT_ONCE
from litellm_messplus.store.first_answers import newest_read

SPAN = 20_000
"""Newest entries of the log among which the answers that were read are looked for."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The number of answers with a verdict, and the share that satisfied: None without any."""

    answers: int
    satisfied: float | None

    @classmethod
    def of(cls, sums: Sums) -> "Judged":
        return cls(sums.calls, sums.satisfied / sums.weight if sums.weight else None)


@dataclass(frozen=True, slots=True)
class ModelAnswers:
    """The answers of one candidate. The heads have ``seen`` so many, and nine in ten of the newest
    shift the log-odds by ``low`` to ``high``, as far as they are trusted.

    Of the newest requests, ``read`` answers were read, to keep or replace them, and ``replaced``
    were replaced. Those took ``cost_share`` of the cost of all calls that answered the requests;
    ``of_them`` are their verdicts, and ``instead`` those of the answers given in their place.
    ``calibration`` compares the predictions with the verdicts; its ``log_loss_mean`` is that of the
    prompt's prediction. None without any verdict.
    """

    candidate: str
    seen: int
    low: float
    high: float
    read: int
    replaced: int
    cost_share: float
    of_them: Judged
    instead: Judged
    calibration: CandidateCalibration | None


@dataclass(frozen=True, slots=True)
class ZooAnswers:
    """The answers of one zoo. ``evidence`` is the nats by which predictions from answers have
    beaten the prompt's, beyond what using them is charged; of the heads' shifts, the share
    ``shared`` of that of all models is used, and ``own`` of each model's own."""

    zoo: str
    evidence: float
    shared: float
    own: float
    models: tuple[ModelAnswers, ...]


@dataclass(slots=True)
class Newest:
    """Sums over the newest answers of one candidate that were read; ``bins`` by prediction."""

    read: int = 0
    replaced: int = 0
    cost: float = 0.0
    lost: float = 0.0
    of_them: Sums = field(default_factory=Sums)
    instead: Sums = field(default_factory=Sums)
    bins: defaultdict[int, Sums] = field(default_factory=lambda: defaultdict(Sums))

    def add(self, row: Any) -> None:
        """Add an answer, and the one that the client got instead."""
        self.read += 1
        self.cost += (row.cost or 0.0) + (row.given_cost or 0.0)
        verdict = Sums()
        if row.weight:
            verdict = Sums.of(row.answer_said, row.prompt_said, row.value, row.weight)
            self.bins[min(int(row.answer_said * BINS), BINS - 1)] += verdict
        if row.role == CallRole.REPLACED:
            self.replaced += 1
            self.lost += row.cost or 0.0
            self.of_them += verdict
            if row.given_weight:
                self.instead += Sums.of(0.5, 0.5, row.given_value, row.given_weight)

    def calibration(self, name: str) -> CandidateCalibration | None:
        """Compare the predictions with the verdicts."""
        if not self.bins:
            return None
        bins = tuple(sums.bin(place) for place, sums in sorted(self.bins.items()))
        return CandidateCalibration(name, bins, sum(self.bins.values(), Sums()).reading())


async def read_answers(
    connection: AsyncConnection, known: Mapping[str, Predictor | None]
) -> list[ZooAnswers]:
    """Read what answers show, by zoo, from the log and from what is ``known`` of each; a zoo whose
    heads have seen no answer is left out."""
    newest: defaultdict[tuple[str, str], Newest] = defaultdict(Newest)
    found = await connection.stream(newest_read(SPAN), execution_options={"yield_per": AT_ONCE})
    async for rows in found.partitions():
        for row in rows:
            newest[row.zoo, row.candidate].add(row)
    return [
        _zoo(zoo, predictor, newest)
        for zoo, predictor in known.items()
        if predictor is not None and predictor.answers.read.any()
    ]


def _zoo(zoo: str, predictor: Predictor, newest: Mapping[tuple[str, str], Newest]) -> ZooAnswers:
    heads = predictor.answers
    models = []
    for place, name in enumerate(predictor.candidates):
        found = newest.get((zoo, name)) or Newest()
        scores = heads.spread.scores[place].tolist()
        models.append(
            ModelAnswers(
                name,
                int(heads.read[place]),
                scores[0],
                scores[-1],
                found.read,
                found.replaced,
                found.lost / found.cost if found.cost else 0.0,
                Judged.of(found.of_them),
                Judged.of(found.instead),
                found.calibration(name),
            )
        )
    shared, own = heads.trust.of_heads.tolist()
    return ZooAnswers(zoo, heads.trust.evidence, shared, own, tuple(models))


# For people: one line, and a row for each model.


def answers_shown(found: ZooAnswers) -> Iterator[RenderableType]:
    """Render what is known of the answers of a zoo."""
    yield Text(f"{found.zoo}: {_trust(found)}")
    rows = Rows(
        f"{found.zoo}: what answers show beyond their prompts",
        (
            *whole("model"),
            *numbers("seen", "shift of log-odds", "nats a label", "replaced"),
            *numbers("their cost", "satisfied", "given instead"),
        ),
    )
    for model in found.models:
        gain = None if model.calibration is None else model.calibration.reading
        rows.add(
            model.candidate,
            f"{model.seen:,}",
            f"{model.low:+.1f} to {model.high:+.1f}",
            "" if gain is None else f"{gain.gain:+.3f} ({gain.calls:,} labels)",
            f"{model.replaced:,} of {model.read:,}" if model.read else "",
            percent(model.cost_share) if model.replaced else "",
            *map(_judged, (model.of_them, model.instead)),
        )
    yield rows


def _trust(found: ZooAnswers) -> str:
    if found.evidence <= 0.0:
        return "answers have not predicted labels better than their prompts yet"
    return (
        f"answers predict labels better than their prompts by {found.evidence:.1f} nats: "
        f"{percent(found.shared, 0)} of what they show of all models is believed, "
        f"{percent(found.own, 0)} of each model's own"
    )


def _judged(found: Judged) -> str:
    return f"{percent(found.satisfied, 0)} of {found.answers:,}" if found.answers else ""
