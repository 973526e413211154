"""What each surface shows of a log: figures by scope, zoo and stream.

Scopes are the `whole` time, the `last` 500 requests, those `since` the last midnight but one, and
`today`. A stream is a service level, or all promises of a zoo.
"""

import asyncio
import json
import math
import re
import sqlite3
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from typer.testing import CliRunner

from benchmarks.agree.log import ZOOS, midnight
from litellm_messplus.brain.metrics import exposition
from litellm_messplus.certificate.claim import certificate_of, page
from litellm_messplus.cli.main import app
from litellm_messplus.inspecting.listing import Wanted
from litellm_messplus.page.data import PageData
from litellm_messplus.status.build import status_of
from litellm_messplus.status.figures import gauges
from litellm_messplus.store.database import create_engine

LAST = 500
ALL = "*"
"""All promises of a zoo."""


class Key(NamedTuple):
    scope: str
    zoo: str
    stream: str
    figure: str


class Reading(NamedTuple):
    """A figure at a surface; a printed one is right to within half of its last digit."""

    surface: str
    key: Key
    value: float | None
    within: float = 0.0


STATUS = {
    "satisfaction.requests": "requests",
    "satisfaction.judged": "judged",
    "answers.requests": "requests",
    "answers.answered": "answered",
    "answers.failed": "failed",
    "answers.failed_upstream": "failed upstream",
    "answers.failed_no_deployment": "failed no_deployment",
    "answers.failed_deadline": "failed deadline",
    "answers.failed_client_gone": "failed client_gone",
    "answers.failed_refused": "failed refused",
    "answers.failed_unknown": "failed unknown",
    "satisfaction.promised": "promised",
    "satisfaction.rate": "satisfied",
    "satisfaction.low": "low",
    "satisfaction.high": "high",
    "labels.labelled": "labelled",
    "cost.total": "cost",
    "cost.per_request": "cost per request",
    "cost.calls_without_cost": "answers without cost",
    "exploration.requests": "explored",
    "exploration.share": "explored share",
    "exploration.cost": "explored cost",
    "exploration.cost_share": "explored cost share",
    "savings.requests": "compared",
    "savings.cost_largest": "baseline cost",
    "savings.saved": "saved",
    "savings.saved_share": "saved share",
    "overhead.late": "late features",
    "overhead.call_seconds": "call seconds",
}
GAUGES = {
    "requests": "requests",
    "failed": "failed",
    "failed_upstream": "failed upstream",
    "failed_no_deployment": "failed no_deployment",
    "failed_deadline": "failed deadline",
    "failed_client_gone": "failed client_gone",
    "failed_refused": "failed refused",
    "failed_unknown": "failed unknown",
    "judged": "judged",
    "promised": "promised",
    "satisfaction": "satisfied",
    "satisfaction_low": "low",
    "satisfaction_high": "high",
    "cost": "cost",
    "cost_per_request": "cost per request",
    "exploration_share": "explored share",
    "exploration_cost_share": "explored cost share",
    "saved_share": "saved share",
    "labels_unseen_cost": "explored cost",
    "labels_judging_dollars": "judging cost",
    "labels_saved": "saved",
}
NUMBER = r"(-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?)"
CARD = {
    "satisfied, interval": ("satisfied %", "low %", "high %"),
    "judged": ("judged", "answered", "requests"),
    "cost per request": ("cost per request",),
    "explored": ("explored share %", "explored cost share %"),
    "saved": ("saved share %",),
}
"""Rows of the terminal's table, and the numbers in their cells; with `%` a share in percent."""


def surfaces(path: Path, now: datetime) -> Iterator[Reading]:
    """Read them all."""
    yield from _status(path)
    yield from _card(path)
    yield from asyncio.run(_metrics(path))
    yield from asyncio.run(_page(path, now))
    yield from _views(path, now)
    yield from asyncio.run(_certificates(path, now))


def _command(*arguments: str) -> str:
    found = CliRunner().invoke(app, [*arguments], env={"COLUMNS": "220"})
    if found.exit_code:
        raise RuntimeError(found.output)
    return found.output


# Status, terminal, metrics.


def _status(path: Path) -> Iterator[Reading]:
    found = json.loads(_command("status", "--json", "--database", str(path)))
    for level in found["levels"]:
        whose = level["zoo"], level["service_level"]
        for scope, window in (("whole", level["overall"]), ("last", level["last"])):
            for place, name in STATUS.items():
                part, _, field = place.partition(".")
                if window[part] is not None:
                    yield Reading("status", Key(scope, *whose, name), window[part][field])
            for source in window["labels"]["sources"]:
                for field, name in (("labelled", "labels"), ("counting",) * 2, ("rate",) * 2):
                    key = Key(scope, *whose, f"{name} {source['source']}")
                    yield Reading("status", key, source[field])
    for each in found["label_costs"]:
        of = each["zoo"], "all streams"
        yield Reading("status", Key("whole", *of, "explored cost"), each["unseen"])
        yield Reading("status", Key("whole", *of, "judging cost"), each["judging"])
        yield Reading("status", Key("whole", each["zoo"], ALL, "saved"), each["saved"])
        yield Reading("status", Key("today", *of, "explored cost"), each["unseen_today"])
    for each in found["judges"]:
        for field, name in (("gradings",) * 2, ("graded",) * 2, ("cost", "cost of")):
            key = Key("whole", each["zoo"], "all streams", f"{name} {each['judge']}")
            yield Reading("status", key, each[field])
    for each in found["switches"]:
        if each["switched"] and (came := each["switched"]["happened"]):
            for field, name in (
                *(("requests",) * 2, ("answered", "judged")),
                *(("satisfaction", "satisfied"), ("cost", "cost per request")),
            ):
                yield Reading("forecast", Key("since", each["zoo"], ALL, name), came[field])


def _printed(surface: str, key: Key, text: str) -> Reading:
    """Take a number as it was printed: to four digits, or to the decimals of a percentage."""
    value = float(text.replace(",", ""))
    if key.figure.endswith(" %"):
        key = key._replace(figure=key.figure.removesuffix(" %"))
        return Reading(surface, key, value / 100.0, 0.00051)
    digits = math.floor(math.log10(abs(value))) - 3 if value else -9
    return Reading(surface, key, value, 0.501 * 10.0**digits)


def _card(path: Path) -> Iterator[Reading]:
    text = _command("status", "--full", "--database", str(path))
    whose: tuple[str, str] | None = None
    for line in text.splitlines():
        if title := re.search(r"^\s*(\S+), service level (\S+?);", line):
            whose = title[1], title[2]
        cells = [each.strip() for each in line.split("│")]
        if whose is None or len(cells) != 5 or cells[1] not in CARD:
            continue
        for scope, cell in (("whole", cells[2]), ("last", cells[3])):
            for name, number in zip(CARD[cells[1]], re.findall(NUMBER, cell), strict=False):
                yield _printed("terminal", Key(scope, *whose, name), number)
    happened = rf"^(\S+): .*happened: {NUMBER} % satisfied, {NUMBER} a request, {NUMBER} requests"
    for came in re.finditer(happened, text, re.MULTILINE):
        for name, number in zip(
            ("satisfied %", "cost per request", "requests"), came.groups()[1:], strict=True
        ):
            yield _printed("terminal", Key("since", came[1], ALL, name), number)


async def _metrics(path: Path) -> list[Reading]:
    text = exposition(gauges(await status_of(str(path))), {})
    found = []
    for name, given, value in re.findall(r"^messplus_(\w+)\{(.*?)\} (\S+)$", text, re.MULTILINE):
        of = dict(re.findall(r'(\w+)="(.*?)"', given))
        figure = GAUGES.get(name.removeprefix("overall_"))
        if figure is not None:
            scope = "last" if "level" in of and not name.startswith("overall_") else "whole"
            every = ALL if figure == "saved" else "all streams"
            key = Key(scope, of["zoo"], of.get("level", every), figure)
            found.append(Reading("metrics", key, float(value)))
    return found


# The page.


async def _page(path: Path, now: datetime) -> list[Reading]:
    async def share(_: object, read: Callable[[], Any]) -> Any:
        return await read()

    async def status() -> Any:
        return await status_of(str(path))

    engine = create_engine(f"sqlite+aiosqlite:///{path}")
    data = PageData(engine, status, share)
    found: list[Reading] = []
    with sqlite3.connect(path) as connection:
        streams = connection.execute("SELECT DISTINCT zoo, service_level FROM requests").fetchall()
    try:
        for zoo, level in streams:
            points = (await data.series(zoo, level, 14))["points"]
            begun = midnight(now, 1).isoformat()
            recent = [each for each in points if each["at"] >= begun]
            newest = (await data.series(zoo, level, None))["points"]
            for surface, scope, some in (
                *(("page days", "whole", points), ("page days", "since", recent)),
                ("page newest", "last", newest),
            ):
                for name, value in _points(some, is_newest=surface == "page newest"):
                    found.append(Reading(surface, Key(scope, zoo, level, name), value))
            rows: list[Any] = []
            before = None
            while len(rows) < LAST:
                listed = await data.requests(Wanted(zoo, level, before=before))
                # A list may show those that were served as before too.
                rows += [each for each in listed["requests"] if each["service_level"] == level]
                if (before := listed["before"]) is None:
                    break
            for name, value in _listed(rows[:LAST]):
                found.append(Reading("page list", Key("last", zoo, level, name), value))
    finally:
        await engine.dispose()
    return found


def _points(points: list[Any], *, is_newest: bool) -> Iterator[tuple[str, float]]:
    for field, name in (
        *(("requests",) * 2, ("answered",) * 2, ("failed",) * 2, ("cost",) * 2),
        *(("judged",) * 2, ("paid_at_largest", "baseline cost")),
    ):
        if name == "judged" and is_newest:
            continue  # those of the newest reach back further than their own requests
        yield name, sum(each[field] for each in points)
    yield "saved", sum(each["paid_at_largest"] - each["paid"] for each in points)


def _listed(rows: list[Any]) -> Iterator[tuple[str, float]]:
    yield "requests", len(rows)
    yield "answered", sum(each["status"] == "success" for each in rows)
    yield "failed", sum(each["status"] == "failure" for each in rows)
    yield "judged", sum(each["satisfaction"] is not None for each in rows)
    yield "cost", sum(each["cost"] or 0.0 for each in rows)
    yield "explored", sum(each["is_exploration"] for each in rows)


# SQL.

STREAM = "level || CASE served_by WHEN 'router' THEN '' ELSE ':before' END"
"""The name of a stream in the tables, as every other surface has it."""
EACH = """
    SELECT zoo, {stream} AS stream, COUNT(*) AS requests,
        SUM(outcome = 'answered') AS answered, SUM(outcome = 'failed') AS failed,
        COALESCE(SUM(failure = 'upstream'), 0) AS "failed upstream",
        COALESCE(SUM(failure = 'no_deployment'), 0) AS "failed no_deployment",
        COALESCE(SUM(failure = 'deadline'), 0) AS "failed deadline",
        COALESCE(SUM(failure = 'client_gone'), 0) AS "failed client_gone",
        COALESCE(SUM(failure = 'refused'), 0) AS "failed refused",
        COALESCE(SUM(failure = 'unknown'), 0) AS "failed unknown",
        SUM(is_cache_hit) AS cached,
        COUNT(judged) AS judged, SUM(satisfied * weight) / SUM(weight) AS satisfied,
        SUM(COALESCE(cost, exploration_cost)) AS cost, SUM(is_exploration) AS explored,
        SUM(exploration_cost) AS "explored cost", AVG(cost) AS "cost per request",
        AVG(seconds) AS "call seconds"
    FROM {asked} GROUP BY 1, 2
"""
SAID = f"""
    SELECT zoo, {STREAM} AS stream, said.source,
        COUNT(*) AS labels, AVG(said.value) AS rate
    FROM (SELECT * FROM {{asked}}) AS asked
    JOIN current_labels AS said ON said.call_id = asked.request_id || '.0' GROUP BY 1, 2, 3
"""
DAILY = f"""
    SELECT zoo, {STREAM} AS stream, SUM(requests) AS requests,
        SUM(answered) AS answered, SUM(failed) AS failed,
        SUM(failed_upstream) AS "failed upstream",
        SUM(failed_no_deployment) AS "failed no_deployment",
        SUM(failed_deadline) AS "failed deadline", SUM(failed_client_gone) AS "failed client_gone",
        SUM(failed_refused) AS "failed refused", SUM(failed_unknown) AS "failed unknown",
        SUM(judged) AS judged, SUM(cost) AS cost
    FROM daily_service_levels {{}} GROUP BY 1, 2
"""


def _views(path: Path, now: datetime) -> Iterator[Reading]:
    since = midnight(now, 1).date()
    newest = (
        "(SELECT *, ROW_NUMBER() OVER (PARTITION BY zoo, level, served_by "
        f"ORDER BY created_at DESC) AS place FROM requests_v) WHERE place <= {LAST}"
    )
    recent = f"requests_v WHERE day >= '{since}' AND served_by = 'router'"
    saved = (
        "SELECT zoo, level AS stream, requests AS compared, saved, "
        'cost_largest AS "baseline cost", saved_share AS "saved share" FROM savings'
    )
    views = (
        ("requests_v", "last", EACH.format(stream=STREAM, asked=newest)),
        ("current_labels", "last", SAID.format(asked=newest)),
        ("requests_v", "since", EACH.format(stream=f"'{ALL}'", asked=recent)),
        ("daily_service_levels", "whole", DAILY.format("")),
        ("daily_service_levels", "since", DAILY.format(f"WHERE day >= '{since}'")),
        (
            "daily_service_levels",
            "today",
            f"SELECT zoo, {STREAM} AS stream, requests, satisfaction AS satisfied, cost, "
            'cost_per_request AS "cost per request" FROM daily_service_levels '
            f"WHERE day = '{now.date()}'",
        ),
        ("savings", "whole", saved),
    )
    with sqlite3.connect(path) as connection:
        connection.row_factory = sqlite3.Row
        for view, scope, query in views:
            for row in connection.execute(query):
                values = dict(row)
                whose = values.pop("zoo"), values.pop("stream")
                of = f" {values.pop('source')}" if "source" in values else ""
                for name, value in values.items():
                    yield Reading(f"SQL {view}", Key(scope, *whose, f"{name}{of}"), value)


# Certificate.


async def _certificates(path: Path, now: datetime) -> list[Reading]:
    found = []
    for zoo in (each for each in ZOOS if each != "quiet"):  # which was only watched
        certificate = await certificate_of(str(path), zoo, midnight(now, 1).date())
        text = page(certificate)
        for promise in certificate.promises:
            whose = zoo, promise.service_level
            for scope, claim in (("since", promise.since), ("last", promise.last)):
                if claim is not None:
                    key = Key(scope, *whose, "claimed")
                    found.append(Reading("certificate", key, claim.requests))
                    found.append(Reading("certificate", key._replace(figure="not answered"),
                                      claim.failed))  # fmt: skip
            part = text.split(f"## Service level {promise.service_level}\n")[1]
            number = re.search(rf"of the {NUMBER} \w+ were satisfied", part)
            if number is not None:
                key = Key("since", *whose, "claimed")
                found.append(_printed("certificate page", key, number[1]))
    return found
