"""The project's own database as recordings: past traffic, to be replayed.

A replay must know what every model would have answered. A log has that only for explorations of all
candidates; for any other request it has the answer of one model, if it was judged. Unknown outcomes
are left open here, and drawn at the replay (`filling`)."""

import asyncio
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Select, Table, and_, func, select

from litellm_messplus.prediction.encoder import Conversation, Encoder, FeatureRows, Features
from litellm_messplus.prediction.surface import Surface, read_surface
from litellm_messplus.replay.recording import Order, Prompts, Recording, ReplayError
from litellm_messplus.runtime import parquet
from litellm_messplus.runtime.parquet import ParquetError
from litellm_messplus.state.verdict import counting
from litellm_messplus.store.reading import UnreadableDatabaseError, reading
from litellm_messplus.store.rows import features_from_bytes, logged_surface
from litellm_messplus.store.tables import call_energy, calls, labels, requests, verdicts

# Unknown outcomes, drawn from known ones of the same model on similar prompts.
#
# For most requests, a log of served requests has the answer of one model. To replay it under
# another alpha, each missing outcome is taken from a donor: a request that the model did answer,
# drawn from those with the nearest prompts (hot-deck imputation; Andridge and Little, "A review of
# hot deck imputation for survey non-response", 2010). Verdict and cost come from one donor, so that
# they stay together; the similarity of the prompts makes up for a model having been called only on
# the prompts that it was chosen for.
#
# The uncertainty about a rarely called model shows in the spread over seeds: each weights donors
# anew, by Rubin's Bayesian bootstrap (1981), so that a rate from 50 labels varies as one does.

ALIKE = 10
"""Nearest donors, one of which is drawn: the nearest alone would repeat one verdict many times."""
DONORS = 4000
"""Donors per model, the newest: the work grows with requests times donors."""
BLUR = 1e-3
"""Random noise on a cosine: equally near prompts are taken in random order, or the same ten of a
thousand equal ones would stand for all."""
AT_ONCE = 512
"""Requests compared with all donors at once, which bounds the memory."""


@dataclass(frozen=True, eq=False)
class _Gap:
    """Requests whose outcome under ``model`` is missing; ``donors`` has a row for each of them."""

    model: int
    missing: Order
    donors: NDArray[np.intp]


class Filling:
    """The imputation of one recording. Raises ValueError if one of its models was never seen."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        directions = _unit_rows(recording.prompts.features)[recording.prompt]
        self._gaps = [
            _gap(model, directions, is_known) for model, is_known in enumerate(recording.is_known.T)
        ]

    @property
    def note(self) -> str:
        """The note for readers of any figure made from it."""
        missing = 1.0 - float(self._recording.is_known.mean())
        return f"{missing:.0%} of all outcomes were never seen: drawn from those of alike prompts"

    def drawn(self, generator: np.random.Generator) -> Recording:
        """Draw the recording without gaps; a cost that is known without its verdict is kept."""
        satisfied, cost = self._recording.satisfied.copy(), self._recording.cost.copy()
        weights = generator.exponential(size=len(satisfied))
        for gap in self._gaps:
            donors = _one_each(gap.donors, weights, generator)
            satisfied[gap.missing, gap.model] = satisfied[donors, gap.model]
            known = cost[gap.missing, gap.model]
            donated = cost[donors, gap.model]
            cost[gap.missing, gap.model] = np.where(np.isnan(known), donated, known)
        return replace(self._recording, satisfied=satisfied, cost=cost)


def _gap(model: int, directions: FeatureRows, is_known: NDArray[np.bool_]) -> _Gap:
    seen, missing = np.flatnonzero(is_known)[-DONORS:], np.flatnonzero(~is_known)
    if not seen.size:
        raise ValueError(f"nothing is known of model {model}")
    return _Gap(model, missing, _nearest(directions, missing, seen))


def _nearest(directions: FeatureRows, missing: Order, seen: Order) -> NDArray[np.intp]:
    """Find the nearest of the seen requests by the cosine of their features: shape (missing, ALIKE,
    or fewer)."""
    count, blur = min(ALIKE, len(seen)), np.random.default_rng(0)
    nearest = np.empty((len(missing), count), dtype=np.intp)
    for start in range(0, len(missing), AT_ONCE):
        rows = slice(start, start + AT_ONCE)
        distance = blur.random((len(missing[rows]), len(seen)), dtype=np.float32) * BLUR
        distance -= directions[missing[rows]] @ directions[seen].T
        nearest[rows] = seen[np.argpartition(distance, count - 1, axis=1)[:, :count]]
    return nearest


def _one_each(
    donors: NDArray[np.intp], weights: NDArray[np.float64], generator: np.random.Generator
) -> Order:
    """Draw one of each row's donors, with probability in proportion to its weight."""
    upto = np.cumsum(weights[donors], axis=1)
    draw = generator.random((len(donors), 1)) * upto[:, -1:]
    chosen: Order = donors[np.arange(len(donors)), (draw >= upto).sum(axis=1)]
    return chosen


def _unit_rows(features: FeatureRows) -> FeatureRows:
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    return (features / np.where(lengths > 0.0, lengths, 1.0)).astype(np.float32)


SATISFIED_FROM = 0.5
"""A verdict of at least this counts as satisfied: the yardsticks need a yes or no."""
FEWEST = 30
"""Least number of judged calls of a model to draw from. A rate from 30 has a standard error of 8
points; a model with fewer is left out."""


@dataclass(slots=True)
class _Request:
    """A logged request. ``outcomes`` holds, by candidate, the label that counts (NaN if none) and
    the cost."""

    text: str
    characters: int
    features: Features
    surface: Surface | None
    outcomes: dict[str, tuple[float, float]] = field(default_factory=dict)


def is_database(source: str) -> bool:
    """Tell whether a source names a log, that is a database or the folder of its archive, and not
    a file of rows."""
    is_file = Path(source).suffix in (".db", ".sqlite", ".sqlite3")
    return "://" in source or is_file or Path(source).is_dir()


def read_database(source: str, encoder: Encoder) -> list[Recording]:
    """Read one recording per zoo, in the order of the log, from a database or its archive; named
    `database:zoo`, without a password.

    If all outcomes are known for some requests of a zoo, and none for the others, only the former
    are kept. Raises ReplayError for a database that cannot be read, or that holds too little on
    every zoo.
    """
    name = source.rsplit("@", 1)[-1]
    try:
        folder = Path(source)
        found = _archived(folder) if folder.is_dir() else asyncio.run(_rows(source))
    except (UnreadableDatabaseError, ParquetError, OSError) as error:
        raise ReplayError(str(error)) from error
    recordings = [
        _recording(f"{name}:{zoo}", zoo_requests)
        for zoo, zoo_requests in _by_zoo(found, encoder).items()
    ]
    usable = [recording for recording in recordings if recording is not None]
    if not usable:
        raise ReplayError(
            f"{name}: judged calls: given fewer than {FEWEST} of all models but one, or of all, so "
            "no one knows what the others would have answered; allowed: a database with at least "
            f"{FEWEST} of two models, or with requests to which every model answered"
        )
    return usable


Archived = Any
"""A row of an archive, with the columns of its version."""


class _Logged(NamedTuple):
    """A request, with one of its calls."""

    zoo: str
    request_id: str
    prompt: str | None
    prompt_characters: int
    encoder: str
    features: bytes | None
    surface: bytes | None
    surface_version: str | None
    candidate: str | None = None
    cost: float | None = None
    value: float | None = None


OF_REQUEST = _Logged._fields[:-3]


async def _rows(source: str) -> list[_Logged]:
    async with reading(source) as engine, engine.connect() as connection:
        return [_Logged(*row) for row in await connection.execute(_query())]


def _archived(folder: Path) -> list[_Logged]:
    """Read the same from an archive of `messplus prune`, of any version of the log."""
    made: dict[str, list[Archived]] = defaultdict(list)
    labelled: dict[str, list[Archived]] = defaultdict(list)
    for call in _table(folder, calls):
        is_own = call.status == "success" and not call.is_cache_hit
        if is_own and None not in (call.candidate, call.cost):
            made[call.request_id].append(call)
    for label in _table(folder, labels):
        labelled[label.call_id].append(label)
    energy = {each.call_id: each.cost for each in _table(folder, call_energy)}
    found = []
    for request in _table(folder, requests):
        of_request: list[Any] = [getattr(request, name, None) for name in OF_REQUEST]
        found.append(first := _Logged(*of_request))
        for call in made[request.request_id]:
            verdict = counting(sorted(labelled[call.call_id], key=lambda each: each.position))
            measured = energy.get(call.call_id)
            found.append(
                first._replace(
                    candidate=call.candidate,
                    cost=call.cost if measured is None else measured,
                    value=None if verdict is None else verdict.value,
                )
            )
    return found


def _table(folder: Path, table: Table) -> Iterator[Archived]:
    """Read the rows of a table in the order of the log."""
    for path in sorted((folder / table.name).glob("*.parquet")):
        for row in parquet.rows(path):
            yield SimpleNamespace(**row)


def _query() -> Select[Any]:
    """Query every request, with each measured call that was really made, and the label that counts
    for it; once, without a call, if there is none."""
    measured = and_(
        calls.c.request_id == requests.c.request_id,
        calls.c.status == "success",
        calls.c.is_cache_hit.is_(False),
        calls.c.candidate.is_not(None),
        calls.c.cost.is_not(None),
    )
    return (
        select(
            *(requests.c[name] for name in OF_REQUEST),
            calls.c.candidate,
            func.coalesce(call_energy.c.cost, calls.c.cost).label("cost"),
            verdicts.c.value,
        )
        .outerjoin(calls, measured)
        .outerjoin(verdicts, verdicts.c.call_id == calls.c.call_id)
        .outerjoin(call_energy, call_energy.c.call_id == calls.c.call_id)
        .order_by(requests.c.position, calls.c.position)
    )


def _by_zoo(found: list[_Logged], encoder: Encoder) -> dict[str, list[_Request]]:
    """Group the requests by zoo, leaving out those without features of this encoder, unless their
    text was kept."""
    zoos: dict[str, dict[str, _Request]] = defaultdict(dict)
    for row in found:
        known = zoos[row.zoo]
        if row.request_id not in known:
            features = _features(row, encoder)
            if features is None:
                continue
            text = row.prompt or ""
            known[row.request_id] = _Request(text, row.prompt_characters, features, _surface(row))
        if row.candidate is not None and row.cost is not None:
            value = math.nan if row.value is None else float(row.value >= SATISFIED_FROM)
            known[row.request_id].outcomes[row.candidate] = value, row.cost
    return {zoo: list(known.values()) for zoo, known in zoos.items()}


def _features(row: _Logged, encoder: Encoder) -> Features | None:
    if row.encoder == encoder.name and row.features is not None:
        return features_from_bytes(row.features)
    if row.prompt is None:
        return None
    features: Features = encoder.encode([encoder.read(Conversation.of_text(row.prompt))])[0]
    return features


def _surface(row: _Logged) -> Surface | None:
    """Return the logged surface; if only the text was kept, the surface of that."""
    logged = logged_surface(row.surface, row.surface_version)
    if logged is not None or row.prompt is None:
        return logged
    return read_surface(Conversation.of_text(row.prompt))


def _recording(name: str, found: list[_Request]) -> Recording | None:
    """Build a recording; None if fewer than two models have enough judged calls."""
    models = list(dict.fromkeys(model for request in found for model in request.outcomes))
    complete = [request for request in found if _judged(request) == len(models) > 1]
    judged = Counter(
        model
        for request in found
        for model, (value, _) in request.outcomes.items()
        if not math.isnan(value)
    )
    known = [model for model in models if judged[model] >= FEWEST]
    if len(known) > 1:
        return _of_requests(name, known, found, _notes(models, judged))
    return _of_requests(name, models, complete, ()) if complete else None


def _judged(request: _Request) -> int:
    return sum(not math.isnan(value) for value, _ in request.outcomes.values())


def _notes(models: Sequence[str], judged: Counter[str]) -> tuple[str, ...]:
    """Note what the log does not contain."""
    few = [f"{model} ({judged[model]})" for model in models if judged[model] < FEWEST]
    left_out = f"left out, with fewer than {FEWEST} judged calls: {', '.join(few)}"
    return (left_out,) if few else ()


def _of_requests(
    name: str, models: Sequence[str], found: Sequence[_Request], notes: tuple[str, ...]
) -> Recording:
    unknown = (math.nan, math.nan)
    outcomes = np.array(
        [[request.outcomes.get(model, unknown) for model in models] for request in found]
    )
    return Recording(
        name=name,
        models=tuple(models),
        unit="the zoo's unit",
        prompts=Prompts(
            tuple(request.text for request in found),
            tuple(request.characters for request in found),
            np.array([request.features for request in found], dtype=np.float32),
            tuple(request.surface for request in found),
        ),
        prompt=np.arange(len(found)),
        satisfied=outcomes[:, :, 0],
        cost=outcomes[:, :, 1],
        notes=notes,
    )
