"""The project's own database as recordings: yesterday's traffic, to be replayed.

A replay must know what every model would have answered. A log tells that only of requests for
which every candidate was called and labelled, which are the explorations of all candidates. These
are the recording; all others are left out.
"""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Row, Select, and_, column, func, select, table
from sqlalchemy.exc import SQLAlchemyError

from litellm_messplus.errors import ConfigurationError
from litellm_messplus.prediction.conversation import Conversation
from litellm_messplus.prediction.encoder import Encoder, Features
from litellm_messplus.replay.errors import ReplayError
from litellm_messplus.replay.recording import Prompts, Recording
from litellm_messplus.store.database import create_engine
from litellm_messplus.store.rows import features_from_bytes
from litellm_messplus.store.tables import call_energy, calls, requests

VERDICTS = table("verdicts", column("call_id"), column("value"))
"""The view, as far as it is read here."""
SATISFIED_FROM = 0.5
"""A verdict of at least this counts as satisfied: the yardsticks know yes and no alone."""


@dataclass(slots=True)
class _Request:
    """``verdicts`` holds, by candidate, the label that counts and the cost of the call."""

    text: str
    characters: int
    features: Features
    verdicts: dict[str, tuple[float, float]] = field(default_factory=dict)


def is_database(source: str) -> bool:
    """Whether it names a database rather than a file of rows."""
    return "://" in source or Path(source).suffix in (".db", ".sqlite", ".sqlite3")


def read_database(source: str, encoder: Encoder) -> list[Recording]:
    """One recording a zoo, in the order of the log; named `database:zoo`, without a password.

    Raises ReplayError for a database that cannot be read, or in which no request's outcome is known
    for every candidate.
    """
    url = source if "://" in source else f"sqlite+aiosqlite:///{source}"
    name = source.rsplit("@", 1)[-1]
    if "://" not in source and not Path(source).is_file():
        raise ReplayError(f"{source}: cannot be read (no such file)")
    try:
        found = asyncio.run(_rows(url))
    except (SQLAlchemyError, ConfigurationError, OSError, ImportError) as error:
        reason = str(getattr(error, "orig", None) or error)
        raise ReplayError(f"{name}: cannot be read ({reason})") from error
    recordings = [
        _recording(f"{name}:{zoo}", zoo_requests)
        for zoo, zoo_requests in _by_zoo(found, encoder).items()
    ]
    usable = [recording for recording in recordings if recording is not None]
    if not usable:
        raise ReplayError(
            f"{name}: labelled calls: given no request with one of every candidate, so nobody "
            "knows what the other models would have answered; allowed: a database with "
            "explorations in which all candidates were called, and each call labelled"
        )
    return usable


async def _rows(url: str) -> list[Row[Any]]:
    engine = create_engine(url)
    try:
        async with engine.connect() as connection:
            return list(await connection.execute(_query()))
    finally:
        await engine.dispose()


def _query() -> Select[Any]:
    """Every judged call that was really made and measured, with the label that counts."""
    measured = and_(
        calls.c.status == "success",
        calls.c.is_cache_hit.is_(False),
        calls.c.candidate.is_not(None),
        calls.c.cost.is_not(None),
    )
    return (
        select(
            requests.c.zoo,
            requests.c.request_id,
            requests.c.prompt,
            requests.c.prompt_characters,
            requests.c.encoder,
            requests.c.features,
            calls.c.candidate,
            func.coalesce(call_energy.c.cost, calls.c.cost).label("cost"),
            VERDICTS.c.value,
        )
        .join(calls, calls.c.request_id == requests.c.request_id)
        .join(VERDICTS, VERDICTS.c.call_id == calls.c.call_id)
        .outerjoin(call_energy, call_energy.c.call_id == calls.c.call_id)
        .where(measured)
        .order_by(requests.c.position, calls.c.position)
    )


def _by_zoo(found: list[Row[Any]], encoder: Encoder) -> dict[str, list[_Request]]:
    """Requests without features of this encoder are left out, unless their text was kept."""
    zoos: dict[str, dict[str, _Request]] = defaultdict(dict)
    for row in found:
        known = zoos[row.zoo]
        if row.request_id not in known:
            features = _features(row, encoder)
            if features is None:
                continue
            text = row.prompt or ""
            known[row.request_id] = _Request(text, row.prompt_characters, features)
        known[row.request_id].verdicts[row.candidate] = (row.value, row.cost)
    return {zoo: list(known.values()) for zoo, known in zoos.items()}


def _features(row: Row[Any], encoder: Encoder) -> Features | None:
    if row.encoder == encoder.name and row.features is not None:
        return features_from_bytes(row.features)
    if row.prompt is None:
        return None
    features: Features = encoder.encode([encoder.read(Conversation.of_text(row.prompt))])[0]
    return features


def _recording(name: str, found: list[_Request]) -> Recording | None:
    """Of the requests with a verdict on every model; None without any, or with one model only."""
    models = tuple(dict.fromkeys(model for request in found for model in request.verdicts))
    complete = [request for request in found if len(request.verdicts) == len(models)]
    if len(models) < 2 or not complete:
        return None
    verdicts = np.array([[request.verdicts[model] for model in models] for request in complete])
    return Recording(
        name=name,
        models=models,
        unit="the zoo's unit",
        prompts=Prompts(
            tuple(request.text for request in complete),
            tuple(request.characters for request in complete),
            np.array([request.features for request in complete], dtype=np.float32),
        ),
        prompt=np.arange(len(complete)),
        satisfied=(verdicts[:, :, 0] >= SATISFIED_FROM).astype(np.float64),
        cost=verdicts[:, :, 1],
    )
