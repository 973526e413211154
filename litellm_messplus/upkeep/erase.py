"""Erasing the requests of one key or one user, with or without a running proxy."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.runtime.errors import MessplusError
from litellm_messplus.store import erasing
from litellm_messplus.store.erasing import Chunk, Reached
from litellm_messplus.store.erasing import Owner as Owner  # from here, for the command
from litellm_messplus.store.pruning import alone, usable
from litellm_messplus.store.reading import reading
from litellm_messplus.upkeep import prune


@dataclass(frozen=True, slots=True)
class Erased:
    """The result, by zoo: requests that are ``erased``, and those that stay because the newest
    snapshot does not hold all about them (``held``), or because they are not old enough
    (``younger``). A dry run returns what would be erased."""

    database: str
    before: datetime
    erased: Mapping[str, int]
    held: Mapping[str, int]
    younger: Mapping[str, int]
    is_dry_run: bool

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {**asdict(self), "before": self.before.isoformat()}


def checked(before: datetime | None) -> datetime:
    """Return the time before which requests are erased, by default the latest that is allowed.
    Raises ConfigurationError if the given time is too recent."""
    return datetime.now(UTC) - prune.LEAST_AGE if before is None else prune.checked(before)


async def dry_run(database: str, owner: Owner, before: datetime | None) -> Erased:
    """Report what `erase` would do. Raises UnreadableDatabaseError."""
    async with reading(database) as engine:
        reached = await usable(engine)
        return await _walk(engine, owner, checked(before), reached, is_dry_run=True)


async def erase(database: str, owner: Owner, before: datetime | None) -> Erased:
    """Erase the identity and the content of these requests.

    Raises UnreadableDatabaseError, BusyPruningError, and MessplusError if the snapshots were
    deleted meanwhile; what is begun stays begun, and the next run finishes it.
    """
    before = checked(before)
    async with prune.writing(database) as engine, alone(engine):
        reached = await usable(engine)
        would = await _walk(engine, owner, before, reached, is_dry_run=True)
        if not await erasing.keep(engine, [reached[zoo] for zoo in would.erased]):
            raise MessplusError(
                "nothing is erased: the snapshots were replaced meanwhile; try again"
            )
        await asyncio.sleep(prune.SETTLE_SECONDS if would.erased else 0.0)
        found = await _walk(engine, owner, before, reached, is_dry_run=False)
        await erasing.empty_wal(engine)
        return found


async def _walk(
    engine: AsyncEngine, owner: Owner, before: datetime, reached: Reached, *, is_dry_run: bool
) -> Erased:
    """Walk through the owner's requests, chunk by chunk, and erase them, or only look."""
    take = _look if is_dry_run else _erase
    erased, held, younger = Counter[str](), Counter[str](), Counter[str]()
    async for chunk in erasing.chunks(engine, owner):
        old = [row for row in chunk if row.created_at < before]
        taken = set(await take(engine, old, reached))
        erased.update(row.zoo for row in old if row.request_id in taken)
        held.update(row.zoo for row in old if row.request_id not in taken)
        younger.update(row.zoo for row in chunk if row.created_at >= before)
    counts = {"erased": dict(erased), "held": dict(held), "younger": dict(younger)}
    return Erased(engine.url.render_as_string(), before, **counts, is_dry_run=is_dry_run)


async def _look(engine: AsyncEngine, chunk: Chunk, reached: Reached) -> list[str]:
    async with engine.connect() as connection:
        return await erasing.erasable(connection, chunk, reached)


async def _erase(engine: AsyncEngine, chunk: Chunk, reached: Reached) -> list[str]:
    began = time.monotonic()
    found = await erasing.erase(engine, chunk, reached)
    await asyncio.sleep(max(prune.PAUSE_SECONDS, time.monotonic() - began))
    return found


def render(found: Erased) -> Iterator[str]:
    """Write what was erased, and why some requests stay."""
    verb = "would be erased" if found.is_dry_run else "are erased"
    if not (found.erased or found.held or found.younger):
        yield "there are no such requests"
    for zoo, count in found.erased.items():
        yield f"{zoo}: {count} requests {verb}"
    for zoo, count in found.younger.items():
        yield (
            f"{zoo}: {count} requests stay, decided after {found.before:%Y-%m-%d %H:%M} UTC: run "
            "this again later"
        )
    for zoo, count in found.held.items():
        yield (
            f"{zoo}: {count} requests stay, for its newest snapshot does not hold all about them. "
            "A proxy takes one every 10,000 records, and when it stops: run this "
            "again then"
        )
