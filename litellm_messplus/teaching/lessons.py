"""Recordings, and other zoos' logs, as lessons for a zoo: checked, counted, encoded.

A lesson teaches what a call of the candidate with its label would have: the mean of the model, the
heads that read the prompt, the length of its answers. It is no request: no queue moves, no promise
counts it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import numpy as np

from litellm_messplus.costs.price import CostUnit, Price
from litellm_messplus.costs.usage import CHARACTERS_PER_TOKEN
from litellm_messplus.errors import MessplusError
from litellm_messplus.prediction.encoder import Encoder
from litellm_messplus.prediction.surface import VERSION
from litellm_messplus.records import LessonRecord
from litellm_messplus.replay.database import is_database, read_database
from litellm_messplus.replay.files import read_file
from litellm_messplus.replay.recording import Recording
from litellm_messplus.zoo import Zoo

MOST = 20_000
"""Lessons of one batch: the newest are taken. The heads know a zoo after a few thousand, and the
log is locked while they are written."""
UNITS = {"J": CostUnit.JOULE, "USD": CostUnit.USD}
"""Of the cost columns of a recording."""


class TeachingError(MessplusError):
    """A source cannot teach this zoo; the message says what was given, and what is allowed."""


@dataclass(frozen=True, slots=True)
class ModelLessons:
    """The lessons of one candidate: how many, and the share that satisfied."""

    lessons: int
    satisfied: float


@dataclass(frozen=True, slots=True)
class Batch:
    """The lessons of one source. ``notes`` are what its reader must know."""

    name: str
    records: tuple[LessonRecord, ...]
    notes: tuple[str, ...]

    @property
    def by_candidate(self) -> dict[str, ModelLessons]:
        """The lessons by candidate, in the order in which the candidates come."""
        values: dict[str, list[float]] = {}
        for record in self.records:
            values.setdefault(record.candidate, []).append(record.value)
        return {
            name: ModelLessons(len(found), float(np.mean(found))) for name, found in values.items()
        }


def read_batch(
    source: str, zoo: Zoo, encoder: Encoder, *, renamed: Mapping[str, str], from_zoo: str | None
) -> Batch:
    """Read the lessons in a file of rows, or in a database's log under the zoo ``from_zoo``.

    ``renamed`` gives for a model of the source the candidate that it is. Raises TeachingError for
    a source whose models are not the zoo's, ReplayError for one that cannot be read.
    """
    recording = _read(source, encoder, from_zoo)
    models = tuple(renamed.get(model, model) for model in recording.models)
    _check_models(source, models, zoo)
    records = _records(replace(recording, models=models), source, zoo, encoder)
    notes = list(recording.notes)
    if len(records) > MOST:
        notes.append(f"the newest {MOST} of {len(records)} lessons are taken")
    if _unit_of(recording, zoo) is None:
        notes.append(
            f"costs are in {recording.unit}, the zoo counts in {zoo.settings.cost_unit.value}: "
            "what answers cost is not taught"
        )
    return Batch(source, tuple(records[-MOST:]), tuple(notes))


def _read(source: str, encoder: Encoder, from_zoo: str | None) -> Recording:
    if not is_database(source):
        return read_file(Path(source), encoder)
    found = {
        recording.name.rpartition(":")[2]: recording for recording in read_database(source, encoder)
    }
    if from_zoo is None and len(found) == 1:
        return next(iter(found.values()))
    if from_zoo not in found:
        given = "nothing" if from_zoo is None else repr(from_zoo)
        raise TeachingError(f"--from-zoo: given {given}; allowed: {' or '.join(found)}")
    return found[from_zoo]


def _check_models(source: str, models: tuple[str, ...], zoo: Zoo) -> None:
    strangers = [model for model in models if model not in zoo.candidates]
    if strangers:
        raise TeachingError(
            f"{source}: models: given {', '.join(strangers)}; allowed: the candidates of the zoo "
            f"{zoo.name} ({', '.join(zoo.candidates)}). Say which is which with --rename "
            "MODEL=CANDIDATE"
        )
    if len(set(models)) < len(models):
        raise TeachingError(f"{source}: models: given the same candidate for two of them")


def _unit_of(recording: Recording, zoo: Zoo) -> CostUnit | None:
    """Return the zoo's unit, if the recording counts in it; a log is assumed to."""
    unit = UNITS.get(recording.unit, zoo.settings.cost_unit)
    return unit if unit is zoo.settings.cost_unit else None


def _records(recording: Recording, batch: str, zoo: Zoo, encoder: Encoder) -> list[LessonRecord]:
    """Make the lessons prompt by prompt, model by model; where nobody judged an answer there is no
    lesson."""
    now, prompts = datetime.now(UTC), recording.prompts
    name = blake2b(f"{zoo.name}\0{batch}".encode(), digest_size=8).hexdigest()
    has_cost = _unit_of(recording, zoo) is not None
    records = []
    for request, read in enumerate(recording.prompt.tolist()):
        surface, characters = prompts.surfaces[read], prompts.characters[read]
        for number, candidate in enumerate(recording.models):
            value, cost = recording.satisfied[request, number], recording.cost[request, number]
            if np.isnan(value):
                continue
            price = zoo.prices[candidate]
            is_known = has_cost and not np.isnan(cost)
            records.append(
                LessonRecord(
                    lesson_id=f"taught-{name}-{request}.{number}",
                    batch=batch,
                    zoo=zoo.name,
                    created_at=now,
                    candidate=candidate,
                    encoder=encoder.name,
                    features=prompts.features[read],
                    surface=surface,
                    surface_version=None if surface is None else VERSION,
                    prompt_characters=characters,
                    completion_tokens=_tokens(float(cost), price, characters) if is_known else None,
                    value=float(value),
                )
            )
    return records


def _tokens(cost: float, price: Price, characters: int) -> float | None:
    """Compute how long an answer of that cost is at the zoo's price; None where length has no
    price."""
    if price.completion <= 0.0:
        return None
    spent = price.of(characters / CHARACTERS_PER_TOKEN, 0.0)
    return max((cost - spent) / price.completion, 1.0)
