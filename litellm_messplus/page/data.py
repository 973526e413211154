"""The answers of the page's JSON routes: each reading is bounded, however long the log is."""

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Protocol, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.certificate.claim import Certificate, certify
from litellm_messplus.certificate.reading import NoCertificateError
from litellm_messplus.figures.figure import Plain
from litellm_messplus.inspecting.explain import explain, reason_in_words
from litellm_messplus.inspecting.listing import Wanted, list_requests
from litellm_messplus.inspecting.logged import logged_from
from litellm_messplus.inspecting.render import sentences
from litellm_messplus.page.charts import (
    plain,
    read_label_costs,
    read_newest,
    read_points,
    read_service,
    span_of,
)
from litellm_messplus.status.build import read_calibration
from litellm_messplus.store.reading import one_moment

LONGEST_SECONDS = 10.0
"""Seconds that a reading for the page may take: a viewer does not wait longer."""
OF_NEWEST_DAYS = 7
"""Days whose cost of labels is shown next to the newest requests."""

CERTIFIED_DAYS = 30
"""Days that the page's certificate covers: it reads every labelled request of them."""

T = TypeVar("T")


class Share(Protocol):
    """The sharing of a reading: concurrent callers get the result of one."""

    def __call__(self, key: Hashable, read: Callable[[], Awaitable[T]], /) -> Awaitable[T]:
        """Return the result of ``read``, or the one of a moment ago."""


@dataclass(frozen=True, slots=True)
class PageData:
    """The data of the page; ``status`` is that of the proxy, without the calibration."""

    database: AsyncEngine
    status: Callable[[], Awaitable[Plain]]
    share: Share

    async def overview(self) -> dict[str, Any]:
        """Read every promise as it stands, alerts, judges and keys."""
        found = await self.status()
        return {name: each for name, each in found.items() if name != "calibration"}

    async def calibration(self) -> dict[str, Any]:
        """Compare the predictions with the verdicts, by zoo."""
        return await self.share("calibration", self._calibration)

    async def certificate(self, zoo: str) -> dict[str, Any]:
        """Certify a zoo over the last days. Raises NoCertificateError."""
        found = await self.share(("certificate", zoo), partial(self._certificate, zoo))
        return found.as_dict()

    async def series(self, zoo: str, level: str, days: int | None) -> dict[str, Any]:
        """Read one promise over so many days; if None, over its newest requests."""
        of = zoo, level, days
        return await self.share(("series", *of), partial(self._series, *of))

    async def requests(self, wanted: Wanted) -> dict[str, Any]:
        """List the newest matching requests."""
        async with self._moment() as connection:
            return await list_requests(connection, wanted)

    async def request(self, given: str) -> dict[str, Any]:
        """Explain one request. Raises NotFoundError."""
        found = explain(await logged_from(self.database, given))
        plain = found.as_dict()
        reason = reason_in_words(plain["request"]["reason"])
        return {"sentences": sentences(found), "reason": reason, **plain}

    @asynccontextmanager
    async def _moment(self) -> AsyncIterator[AsyncConnection]:
        """Connect for one bounded reading."""
        async with (
            self.database.connect() as connection,
            one_moment(connection, LONGEST_SECONDS),
        ):
            yield connection

    async def _certificate(self, zoo: str) -> Certificate:
        since = datetime.now(UTC).date() - timedelta(days=CERTIFIED_DAYS)
        try:
            return await certify(self.database, zoo, since, seconds=LONGEST_SECONDS)
        except NoCertificateError:  # a pruned log has fewer days left
            return await certify(self.database, zoo, seconds=LONGEST_SECONDS)

    async def _calibration(self) -> dict[str, Any]:
        async with self._moment() as connection:
            found = await read_calibration(connection)
        return {"calibration": found}

    async def _series(self, zoo: str, level: str, days: int | None) -> dict[str, Any]:
        span = span_of(OF_NEWEST_DAYS if days is None else days, datetime.now(UTC))
        async with self._moment() as connection:
            points = (
                await read_newest(connection, zoo, level)
                if days is None
                else await read_points(connection, zoo, level, span)
            )
            service = await read_service(connection, zoo, level, None if days is None else span)
            labels = await read_label_costs(connection, zoo, span)
        return {
            "step_seconds": None if days is None else span.step.total_seconds(),
            "points": [plain(each) for each in points],
            "service": plain(service),
            "label_costs": [plain(each) for each in labels],
        }
