"""What a running proxy owes by its own account, against the fold of the log."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.status.report import Source, Status
from litellm_messplus.store import log
from litellm_messplus.upkeep.finding import CheckResult, Outcome
from litellm_messplus.upkeep.folding import Fold

CHECK = "queues"
PATIENCE_SECONDS = 10.0
"""A proxy in service is a little behind the log, or ahead of what was read of it."""
LOOK_SECONDS = 0.5
"""Between two looks."""
TOLERANCE = 1e-9

Level = tuple[str, str]
"""A zoo, and a service level of it."""
Ask = Callable[[], Status]
"""Asks the running proxy. Raises NoAnswerError where it does not answer."""


async def check_queues(database: AsyncEngine, fold: Fold, ask: Ask) -> list[CheckResult]:
    """Check that each level's queue is one that the fold had since the first look: the proxy does
    not say where it stands in the log."""
    had: dict[Level, list[float]] = {level: [_queue(fold, level)] for level in _levels(fold)}
    told: dict[Level, float | None] = {}
    right: set[Level] = set()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        told = _queues(await asyncio.to_thread(ask))
        await _fold_on(database, fold, had)
        right |= {level for level in had if _is_one_of(told.get(level), had[level])}
        if len(right) == len(had) or time.monotonic() > deadline:
            break
        await asyncio.sleep(LOOK_SECONDS)
    return [_finding(level, told, had[level], is_right=level in right) for level in had]


async def _fold_on(database: AsyncEngine, fold: Fold, had: dict[Level, list[float]]) -> None:
    of_zoo = defaultdict[str, list[Level]](list)
    for level in had:
        of_zoo[level[0]].append(level)
    async for entry in fold.to(await log.head(database)):
        for level in of_zoo[entry.zoo]:
            had[level].append(_queue(fold, level))


def _levels(fold: Fold) -> list[Level]:
    return [(name, level) for name, engine in fold.engines.items() for level in engine.zoo.levels]


def _queue(fold: Fold, level: Level) -> float:
    zoo, name = level
    return fold.engines[zoo].state.policy.queue(name)


def _queues(status: Status) -> dict[Level, float | None]:
    return {
        (level.zoo, level.service_level): level.queue
        for level in status.levels
        if level.source is Source.ENGINE
    }


def _is_one_of(queue: float | None, had: list[float]) -> bool:
    return queue is not None and any(abs(queue - each) <= TOLERANCE for each in had)


def _finding(
    level: Level, told: dict[Level, float | None], had: list[float], *, is_right: bool
) -> CheckResult:
    name = f"{level[0]}, {level[1]}"
    queue = told.get(level)
    if is_right:
        return CheckResult(CHECK, Outcome.SOUND, f"{name}: the proxy's queue is the fold's")
    if queue is None:
        return CheckResult(
            CHECK,
            Outcome.WRONG,
            f"{name}: the proxy does not know this service level",
            "give the configuration that the proxy runs with",
        )
    return CheckResult(
        CHECK,
        Outcome.WRONG,
        f"{name}: the proxy's queue is {queue:.9g}, and the fold's {had[-1]:.9g}",
        "give the configuration and the database that the proxy runs with; if these are, restart "
        "the proxy, which folds the log again",
    )
