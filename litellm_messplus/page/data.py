"""The answers of the page's JSON routes: each reading is bounded, however long the log is."""

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Protocol, TypeVar

from pydantic_core import to_jsonable_python
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.certificate.claim import Certificate, certify
from litellm_messplus.certificate.reading import NoCertificateError
from litellm_messplus.figures.figure import Plain
from litellm_messplus.figures.templates import tables
from litellm_messplus.inspecting.explain import explain, reason_in_words
from litellm_messplus.inspecting.listing import Wanted, list_requests
from litellm_messplus.inspecting.logged import NotFoundError, logged_from
from litellm_messplus.inspecting.render import sentences, tables_of
from litellm_messplus.page.charts import Mark, plain, read_days, read_models, read_newest, span_of
from litellm_messplus.page.details import details, read_spend, read_uses
from litellm_messplus.status.alerts import AlertKind
from litellm_messplus.status.build import read_calibration
from litellm_messplus.status.render import said
from litellm_messplus.status.switches import read_forecasts
from litellm_messplus.store.observed import ObservedLog
from litellm_messplus.store.reading import one_moment

LONGEST_SECONDS = 10.0
"""Seconds that a reading for the page may take: a viewer does not wait longer."""
OF_NEWEST_DAYS = 7
"""Days that the tables cover next to charts of the newest requests."""
MARKS = 8
"""Most marks in a chart, the newest."""

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
        alerts = [each | {"do": what_to_do(each)} for each in found["alerts"]]
        levels = [each | {"said": said(each, found)} for each in found["levels"]]
        return shown | {"levels": levels, "alerts": alerts}

    async def details(self, zoo: str, level: str, days: int | None) -> dict[str, Any]:
        """Write the tables of a promise's models, labels and spend. Raises NotFoundError."""
        of = zoo, level, days or OF_NEWEST_DAYS
        return await self.share(("details", *of), partial(self._details, *of))

    async def beside(self, zoo: str, level: str) -> dict[str, Any]:
        """Write what is served as before beside the forecast of routing it; empty where nothing
        is. Raises NotFoundError."""
        return await self.share(("beside", zoo, level), partial(self._beside, zoo, level))

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
            "sentences": sentences(found),
            "tables": [each.plain() for each in tables_of(found)],
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
        level = _level(found, zoo, name)
        async with self._moment() as connection:
            uses = await read_uses(connection, zoo, name, span_of(days, datetime.now(UTC)))
            spend = await read_spend(connection, zoo, name)
            calibration = await read_calibration(connection)
        own = {
            part: [each for each in rows if _is_about(each, zoo, name)]
            for part, rows in (found | {"calibration": calibration}).items()
            if isinstance(rows, list)
        }
        return {"sections": details(own, level, uses, spend, days)}

    async def _beside(self, zoo: str, name: str) -> dict[str, Any]:
        found = await self.status()
        level = _level(found, zoo, name)
        if level["as_before"] is None:
            return {"tables": []}
        names = sorted(each["service_level"] for each in found["levels"] if each["zoo"] == zoo)
        log = ObservedLog(self.database, zoo, names)
        known = to_jsonable_python(await read_forecasts(self.database, zoo, log))
        written = tables("page/beside.j2", level=level, now=level["as_before"], **known)
        return {"tables": [each.plain() for each in written]}

    async def _series(self, zoo: str, level: str, days: int | None) -> dict[str, Any]:
        async with self._moment() as connection:
            if days is None:
                found = await read_newest(connection, zoo, level)
            else:
                found = await read_days(connection, zoo, level, span_of(days, datetime.now(UTC)))
            models = await read_models(connection, zoo)
        changed = (await self.status())["model_changes"]
        marks = [*found.marks, *(_fall(each) for each in changed if _is_fall(each, zoo))]
        begin = found.points[0].at if found.points else None
        shown = sorted((each for each in marks if begin and each.at >= begin), key=lambda m: m.at)
        return plain(found) | {"models": models, "marks": [plain(each) for each in shown[-MARKS:]]}


def _level(status: Plain, zoo: str, name: str) -> Plain:
    for each in status["levels"]:
        if (each["zoo"], each["service_level"]) == (zoo, name):
            level: Plain = each
            return level
    raise NotFoundError(f"no promise {name} of a zoo {zoo}")


def _is_about(part: Plain, zoo: str, level: str) -> bool:
    """Tell whether a part of the status is about this promise, or its zoo."""
    return part["zoo"] == zoo and part.get("service_level") in (None, level)


def _is_fall(change: Plain, zoo: str) -> bool:
    return bool(change["zoo"] == zoo and change["after"] < change["before"])


def _fall(change: Plain) -> Mark:
    since = datetime.fromisoformat(change["since"])
    return Mark(since, True, f"{change['candidate']} seems to answer worse")


# What to do about an alert: the line of the runbook.

ZOO = "llama"
"""The zoo of the runbook's commands."""
RUNBOOK: dict[str, str] = {
    AlertKind.SERVED_NOT_CHOSEN: "messplus check --config proxy_config.yaml",
    AlertKind.FAILING: f"messplus requests --zoo {ZOO} --failed",
    AlertKind.OUT_OF_REACH: "Add a better model, or lower alpha.",
    AlertKind.BELOW: "messplus requests --unsatisfied",
    AlertKind.NO_FEEDBACK: "messplus status --full",
    AlertKind.THIN_EVIDENCE: "Wait, or get more labels.",
    AlertKind.JUDGE_STOPPED: "Look at its prompt and its model",
    AlertKind.KEY_HELD: "look closer where the key is unknown",
    AlertKind.CANDIDATES: f"messplus zoo {ZOO}",
    AlertKind.RETURNED: f"messplus zoo {ZOO}",
    AlertKind.JOURNAL: "messplus verify",
    AlertKind.BRAIN: "The proxy's log states why",
    AlertKind.GATES: "messplus check",
    AlertKind.HIDDEN: "LiteLLM hides the words of answers from its logs",
    AlertKind.MODEL_CHANGED: "messplus requests --unsatisfied",
}
"""What the section of each kind says first."""


def what_to_do(alert: Plain) -> str:
    """Return the line of the runbook for an alert, with the name of its zoo."""
    return RUNBOOK[alert["kind"]].replace(ZOO, alert["zoo"] or ZOO)
