"""Which keys stand behind failed requests, late decisions, labels of checks and held labels."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.routing.decision import Reason
from litellm_messplus.store.tables import calls, labels, requests
from litellm_messplus.vocabulary import CallRole, CallStatus, LabelKind

NEWEST = 5_000
"""Requests that are read: the status takes the same time on any log."""
MOST = 10
"""Keys that are shown."""
SATISFIED = 0.5


@dataclass(frozen=True, slots=True)
class KeyIncidents:
    """The newest requests of one key at a zoo, and what they caused.

    ``key_hash`` is None where no key was given. Of the ``requests`` some ``failed``, and of some
    the decision was ``late``. ``checks`` are labels of checks on their served calls, of which so
    many are ``unsatisfied_checks``; ``held`` are labels that are kept without counting.
    """

    zoo: str
    key_hash: str | None
    requests: int
    failed: int
    late: int
    checks: int
    unsatisfied_checks: int
    held: int

    @property
    def counts(self) -> tuple[int, ...]:
        """The counts of what it caused, by kind."""
        return self.failed, self.late, self.checks, self.unsatisfied_checks, self.held


async def read_incidents(connection: AsyncConnection) -> tuple[KeyIncidents, ...]:
    """Read the heaviest keys among the newest requests of all zoos."""
    labelled = {tuple(row[:2]): row[2:] for row in await connection.execute(_labels())}
    found = [
        KeyIncidents(*row, *labelled.get(tuple(row[:2]), (0, 0, 0)))
        for row in await connection.execute(_requests())
    ]
    return heaviest(found)


def heaviest(found: Iterable[KeyIncidents], most: int = MOST) -> tuple[KeyIncidents, ...]:
    """Choose the keys with the largest share of any one kind in their zoo, the largest first, so
    that a kind of which all keys have much hides none of which one has most."""
    keys = [each for each in found if any(each.counts)]
    totals = {
        zoo: [*map(sum, zip(*(each.counts for each in keys if each.zoo == zoo), strict=True))]
        for zoo in {each.zoo for each in keys}
    }

    def share(key: KeyIncidents) -> float:
        of_all = zip(key.counts, totals[key.zoo], strict=True)
        return max(count / max(total, 1) for count, total in of_all)

    ranked = sorted(keys, key=lambda key: (-share(key), key.zoo, key.key_hash or ""))
    return tuple(ranked[:most])


def _newest() -> Select[Any]:
    own = requests.c
    return (
        select(own.request_id, own.zoo, own.key_hash, own.reason)
        .order_by(own.position.desc())
        .limit(NEWEST)
    )


def _requests() -> Select[Any]:
    asked = _newest().subquery()
    served = (calls.c.request_id == asked.c.request_id) & (calls.c.role == CallRole.SERVED)
    return (
        select(
            asked.c.zoo,
            asked.c.key_hash,
            func.count(),
            func.count(case((calls.c.status == CallStatus.FAILURE, 1))),
            func.count(case((asked.c.reason == Reason.DEADLINE_MISSED, 1))),
        )
        .select_from(asked)
        .outerjoin(calls, served)
        .group_by(asked.c.zoo, asked.c.key_hash)
    )


def _labels() -> Select[Any]:
    asked = _newest().subquery()
    is_check = labels.c.kind == LabelKind.CHECK
    is_held = (labels.c.kind != LabelKind.JUDGE) & (labels.c.weight <= 0.0)
    return (
        select(
            asked.c.zoo,
            asked.c.key_hash,
            func.count(case((is_check, 1))),
            func.count(case((is_check & (labels.c.value < SATISFIED), 1))),
            func.count(case((is_held, 1))),
        )
        .select_from(asked)
        .join(labels, labels.c.request_id == asked.c.request_id)
        .where(is_held | is_check, labels.c.call_id == labels.c.request_id + ".0")
        .group_by(asked.c.zoo, asked.c.key_hash)
    )
