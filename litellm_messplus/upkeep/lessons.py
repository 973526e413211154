"""Warm start: recordings, and other zoos' logs, become lessons in the log of a zoo; all that a
command names, or none.

A lesson teaches what a call of the candidate with its label would teach: the mean of the model, the
heads that read the prompt, the length of its answers; of a file with answers also those that read
them. It is no request: it moves no queue, and
counts in no promise.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import numpy as np
from rich.table import Table
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.costs.price import CostUnit, Price
from litellm_messplus.costs.usage import CHARACTERS_PER_TOKEN
from litellm_messplus.encoders.lookup import load_encoder
from litellm_messplus.prediction.answer import ANSWER_VERSION
from litellm_messplus.prediction.encoder import Encoder
from litellm_messplus.prediction.surface import VERSION
from litellm_messplus.records import LessonRecord
from litellm_messplus.replay.database import is_database, read_database
from litellm_messplus.replay.files import read_file
from litellm_messplus.replay.recording import Recording
from litellm_messplus.runtime.errors import MessplusError
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store import log, snapshots
from litellm_messplus.store.database import create_engine, migrate

MOST = 20_000
"""Most lessons of one batch, the newest. The heads know a zoo after a few thousand, and the log is
locked while they are written."""
UNITS = {"J": CostUnit.JOULE, "USD": CostUnit.USD}
"""Units of the cost columns of a recording."""


class TeachingError(MessplusError):
    """A source that cannot teach this zoo; the message names what was given and what is allowed."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The lessons of one source. ``notes`` are what its reader must know."""

    name: str
    records: tuple[LessonRecord, ...]
    notes: tuple[str, ...]

    def table(self) -> Table:
        """Lay out the lessons by candidate: their number, and the share that satisfied."""
        table = Table(title=self.name, caption="; ".join(self.notes) or None)
        table.add_column("candidate")
        table.add_column("lessons", justify="right")
        table.add_column("satisfied", justify="right")
        for name in dict.fromkeys(record.candidate for record in self.records):
            values = [record.value for record in self.records if record.candidate == name]
            table.add_row(name, str(len(values)), f"{np.mean(values):.1%}")
        return table


def teach(
    sources: Sequence[str],
    settings: MessplusSettings,
    zoo: Zoo,
    *,
    renamed: Mapping[str, str],
    from_zoo: str | None,
    is_dry_run: bool,
) -> list[Table | str]:
    """Write the lessons of the sources to the log of the configured database, in one transaction;
    return what is to be shown.

    Raises MessplusError with the reason, before anything is written.
    """
    encoder = load_encoder(settings.encoder)
    batches = [
        read_batch(source, zoo, encoder, renamed=renamed, from_zoo=from_zoo) for source in sources
    ]
    records = [record for batch in batches for record in batch.records]
    if not records:
        raise TeachingError("no lesson in it: no answer was judged")
    text = "dry run: nothing was written"
    if not is_dry_run:
        asyncio.run(_write(settings.database, zoo.name, records))
        text = (
            f"{len(records)} lessons are in the log of {zoo.name}; a running proxy knows them in a "
            "second or two. To take them back: the same command with --forget"
        )
    return [*(batch.table() for batch in batches), text]


async def forget(sources: Sequence[str], database: str, zoo: str, *, is_dry_run: bool) -> str:
    """Take lessons back: of these sources, or of all if none is named; return the message to
    show."""
    async with _opened(database) as engine:
        known = await snapshots.lessons_upto(engine, zoo)
        strangers = [source for source in sources if source not in known]
        if strangers or not known:
            raise TeachingError(
                f"--forget: given {', '.join(strangers) or 'nothing'}; allowed: a source that "
                f"{zoo} was taught ({', '.join(known) or 'there is none'})"
            )
        batches = list(sources or known)
        if is_dry_run:
            async with engine.connect() as connection:
                await snapshots.refuse_lasting(connection, zoo, batches)
            found = sum(known[batch] for batch in batches)
            return f"dry run: {found} lessons would be taken back"
        found = await snapshots.take_back(engine, zoo, batches)
    return (
        f"{found} lessons were taken back. A proxy that is running knows them until it is "
        "restarted; its next start folds the whole log"
    )


def taught(zoos: Mapping[str, Zoo], name: str | None) -> Zoo:
    """Return the zoo to teach. Raises TeachingError if it does not exist, or does not learn from
    others."""
    if name is None or name not in zoos:
        raise TeachingError(f"--zoo: given {name!r}; allowed: {' or '.join(zoos)}")
    if zoos[name].settings.policy != "adaptive":
        raise TeachingError(
            f"--zoo: given {name!r} under policy {zoos[name].settings.policy!r}; allowed: a zoo "
            "under policy 'adaptive' (the paper's learns from its own explorations alone)"
        )
    return zoos[name]


@asynccontextmanager
async def _opened(database: str) -> AsyncIterator[AsyncEngine]:
    engine = create_engine(database)
    try:
        await migrate(engine)
        yield engine
    finally:
        await engine.dispose()


async def _write(database: str, zoo: str, records: Sequence[LessonRecord]) -> None:
    """Write the lessons, but refuse a batch that was pruned: no row shows that it was taught."""
    async with _opened(database) as engine:
        async with engine.connect() as connection:
            lasting = await snapshots.lasting_lessons(connection, zoo)
        known = sorted({record.batch for record in records} & lasting.keys())
        if known:
            raise TeachingError(
                f"given {', '.join(known)}, which was taught before the log was pruned, and lasts; "
                "allowed: each once"
            )
        try:
            await log.append(engine, records, is_durable=True)
        except IntegrityError as error:
            raise TeachingError(
                "given a source that was taught before; allowed: each once (--forget takes it back)"
            ) from error


# From a source to lessons: checked, counted, encoded.


def read_batch(
    source: str, zoo: Zoo, encoder: Encoder, *, renamed: Mapping[str, str], from_zoo: str | None
) -> Batch:
    """Read the lessons in a file of rows, or in a database's log under the zoo ``from_zoo``.

    ``renamed`` maps a model of the source to its candidate. Raises TeachingError for a source whose
    models are not the zoo's, ReplayError for one that cannot be read.
    """
    recording = _read(source, encoder, from_zoo)
    models = tuple(renamed.get(model, model) for model in recording.models)
    _check_models(source, models, zoo)
    records = list(_records(replace(recording, models=models), source, zoo, encoder))
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
        return read_file(Path(source), encoder, reads=True)
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
    """Return the zoo's unit if the recording counts in it; a log is assumed to."""
    unit = UNITS.get(recording.unit, zoo.settings.cost_unit)
    return unit if unit is zoo.settings.cost_unit else None


def _records(
    recording: Recording, batch: str, zoo: Zoo, encoder: Encoder
) -> Iterator[LessonRecord]:
    """Yield the lessons prompt by prompt, model by model; an unjudged answer makes no lesson."""
    now, prompts = datetime.now(UTC), recording.prompts
    name = blake2b(f"{zoo.name}\0{batch}".encode(), digest_size=8).hexdigest()
    has_cost, answers = _unit_of(recording, zoo) is not None, recording.answers
    for request, read in enumerate(recording.prompt.tolist()):
        surface, characters = prompts.surfaces[read], prompts.characters[read]
        for number, candidate in enumerate(recording.models):
            value, cost = recording.satisfied[request, number], recording.cost[request, number]
            if np.isnan(value):
                continue
            is_known, price = has_cost and not np.isnan(cost), zoo.prices[candidate]
            yield LessonRecord(
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
                answer_surface=None if answers is None else answers[request, number],
                answer_version=None if answers is None else ANSWER_VERSION,
            )


def _tokens(cost: float, price: Price, characters: int) -> float | None:
    """Compute the tokens of an answer of that cost at the zoo's price; None if length has no
    price."""
    if price.completion <= 0.0:
        return None
    spent = price.of(characters / CHARACTERS_PER_TOKEN, 0.0)
    return max((cost - spent) / price.completion, 1.0)
