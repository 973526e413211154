"""The answers of the page's JSON routes: each reading is bounded, however long the log is."""

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain
from typing import Any, Protocol, TypeVar

from pydantic_core import to_jsonable_python
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.certificate.claim import Certificate, certify
from litellm_messplus.certificate.reading import NoCertificateError
from litellm_messplus.figures.figure import Plain
from litellm_messplus.figures.templates import lines, tables
from litellm_messplus.inspecting import render
from litellm_messplus.inspecting.explain import explain, reason_in_words
from litellm_messplus.inspecting.listing import Wanted, list_requests
from litellm_messplus.inspecting.logged import logged_from
from litellm_messplus.page.charts import (
    SPENT_OF,
    read_models,
    read_series,
    read_spend,
    read_uses,
    span_of,
)
from litellm_messplus.runtime.terminal import Rows
from litellm_messplus.status.build import read_calibration
from litellm_messplus.status.render import said, tables_of
from litellm_messplus.status.switches import read_forecasts
from litellm_messplus.store.observed import ObservedLog
from litellm_messplus.store.reading import one_moment

LONGEST_SECONDS = 10.0
"""Seconds that a reading for the page may take: a viewer does not wait longer."""
OF_NEWEST_DAYS = 7
"""Days that the tables cover next to charts of the newest requests."""

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
        """Read every promise as it stands and in sentences, and what needs attention with what to
        do about it."""
        found = await self.status()
        shown = {name: each for name, each in found.items() if name != "calibration"}
        alerts = [each | {"do": lines("page/to_do.j2", **each)[0]} for each in found["alerts"]]
        levels = [each | {"said": said(each, found)} for each in found["levels"]]
        return shown | {"levels": levels, "alerts": alerts}

    async def details(self, zoo: str, level: str, days: int | None) -> dict[str, Any]:
        """Write the tables of a promise's models, labels and spend."""
        of = zoo, level, days or OF_NEWEST_DAYS
        return await self.share(("details", *of), partial(self._details, *of))

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
        known = found.as_dict()
        said = {
            "sentences": render.sentences(found),
            "tables": _plain(render.tables_of(found)),
            "reason": reason_in_words(known["request"]["reason"]),
        }
        return said | known

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

    async def _details(self, zoo: str, name: str, days: int) -> dict[str, Any]:
        found = await self.status()
        async with self._moment() as connection:
            uses = await read_uses(connection, zoo, name, span_of(days, datetime.now(UTC)))
            spend = await read_spend(connection, zoo, name)
            found = found | {"calibration": await read_calibration(connection)}
        own = {
            part: [each for each in rows if _is_about(each, zoo, name)]
            for part, rows in found.items()
            if part != "window"
        }
        known = {"levels": own["levels"], "days": days, "uses": uses, "spend": spend}
        written = {
            "Models": (tables("page/models.j2", **known), tables_of("predictions", own)),
            "Labels": (tables("page/labels.j2", **known), tables_of("labels", own)),
            "Spend": (tables("page/spend.j2", most=SPENT_OF, **known),),
            "Requests": (tables_of("requests", own),),
        }
        sections = [{"title": name, "tables": _plain(*each)} for name, each in written.items()]
        return {"sections": sections}

    async def _series(self, zoo: str, name: str, days: int | None) -> dict[str, Any]:
        status = await self.status()
        span = days and span_of(days, datetime.now(UTC))
        async with self._moment() as connection:
            found = await read_series(connection, zoo, name, span or None)
            models = await read_models(connection, zoo)
        beside = [
            each
            for level in status["levels"]
            if _is_about(level, zoo, name) and level["as_before"] is not None
            for each in await self._beside(level)
        ]
        return found | {"models": models, "beside": beside}

    async def _beside(self, level: Plain) -> list[Plain]:
        """Write what is served as before beside the forecast of routing it."""
        zoo = level["zoo"]
        log = ObservedLog(self.database, zoo, [level["service_level"]])
        known = to_jsonable_python(await read_forecasts(self.database, zoo, log))
        return _plain(tables("page/beside.j2", level=level, now=level["as_before"], **known))


def _is_about(part: Plain, zoo: str, level: str) -> bool:
    """Tell whether a part of the status is about this promise, or its zoo."""
    return part["zoo"] == zoo and part.get("service_level") in (None, level)


def _plain(*written: Iterable[Rows]) -> list[Plain]:
    return [each.plain() for each in chain(*written)]
