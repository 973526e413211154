"""The certificate: the claim about each promise of a zoo, its evidence and assumptions, as data and
as one page of Markdown for readers of the claim and for those who check it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypedDict, Unpack

import numpy as np
from pydantic import TypeAdapter
from sqlalchemy import Select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.certificate.evidence import Sampling, bounds
from litellm_messplus.certificate.reading import (
    Counted,
    NoCertificateError,
    counted_last,
    counted_since,
    expected_since,
    labelled_since,
    span_of,
)
from litellm_messplus.figures.interval import (
    WIDEST,
    Interval,
    Verdict,
    points_below,
    verdict,
    verdict_in_words,
)
from litellm_messplus.figures.templates import lines
from litellm_messplus.store.reading import one_moment, reading

LEVEL = 0.95
"""Default confidence of a certificate."""
WINDOW = 500
"""Requests of the last window, as in the status."""
LONGEST_SECONDS = 600.0
"""Time limit in seconds. A certificate is made rarely and reads every labelled request of its days:
some 10 seconds for 100,000 of them."""

# Assumptions that the labels cannot show. Each claim names those that it rests on.

ASSUMED = {
    Sampling.JUDGE: (
        "Which requests the judge grades has nothing to do with how they went: a draw decides it, "
        "and a request that was drawn and not graded is one like the others.",
    ),
    Sampling.DRAWS: (
        "Which requests were asked about was decided by draws of the probabilities in the log.",
    ),
    Sampling.ANSWERS: (
        "Users who answered were as satisfied as those who did not, up to the weight that a "
        "configured `response_bias` gives their verdicts. No number of answers proves this: a "
        "judge that grades a sample would.",
    ),
}
WORDS_ARE_TRUE = "What users and checks say is the truth."
JUDGE_IS_ALIKE = "The judge errs as often on requests of silent users as where users spoke too."
JUDGE_IS_RIGHT = "The judge does not err."
COUNTED = (
    "Labels of users and checks count as they are, the judge's grades stand for requests without "
    "such a label; an answered request without any label is unknown, and the interval has room for "
    "it; a failed request is no answered one."
)
"""The rule of which labels count, and the meaning of silence and failures."""
STATUS_DIFFERS = (
    "`kept` and `not kept` are about all answered requests of these days, at every look; "
    "`on track` and `below` in the status are about the judged ones, as a sample of what is to "
    "come, at one look: near the promise one may say yes where the other says no, and both are "
    "right."
)
"""The difference between the certificate and the status, shown wherever both appear."""
LABELS_ARE_IN = "Labels that are still to come are like those that are there."


@dataclass(frozen=True, slots=True)
class ClaimGroup:
    """A group of requests with the same labels, of each of which the same was expected; `null` is
    no label."""

    word: float | None
    grade: float | None
    expected: float
    weight: float
    probability: float | None
    requests: int


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim about the answered requests of one promise: the share satisfied lies from ``low``
    to ``high`` at every look, except with the probability that the certificate's level leaves.

    ``told`` counts requests labelled by users or checks, ``graded`` by the judge, ``paired`` by
    both; ``expected`` is the number that predictions expected to satisfy before any label;
    ``alpha`` is the promised share, the mean if it changed. ``failed`` got
    no answer, ``answered_share`` is the share answered of
    both.
    """

    alpha: float
    requests: int
    expected: float
    told: int
    graded: int
    paired: int
    sampling: Sampling
    rate: float
    low: float
    high: float
    verdict: Verdict
    kept_within_points: float | None
    assumed: tuple[str, ...]
    said: tuple[ClaimGroup, ...]
    failed: int = 0
    answered_share: float = 1.0

    @property
    def verdict_in_words(self) -> str:
        """The verdict in words, with its points if it has any."""
        return verdict_in_words(self.verdict, self.kept_within_points)


@dataclass(frozen=True, slots=True)
class Promise:
    """The claims about one service level: since the first day, and over its last window; None if
    none of those requests was answered."""

    service_level: str
    since: Claim
    last: Claim | None


@dataclass(frozen=True, slots=True)
class Certificate:
    """The certificate of a zoo, from the beginning of a day until a moment, UTC. ``window`` is the
    number of requests of a last window; ``sql`` returns the groups ``said`` of every promise since
    that day, and ``expected_sql`` what failed and what was expected."""

    zoo: str
    level: float
    made_at: datetime
    since: date
    until: datetime
    window: int
    promises: tuple[Promise, ...]
    sql: str
    expected_sql: str
    counted: str = COUNTED
    beside_status: str = STATUS_DIFFERS

    def as_dict(self) -> dict[str, Any]:
        """Convert the certificate for JSON: plain dictionaries, lists, text and numbers."""
        plain: dict[str, Any] = _ADAPTER.dump_python(self, mode="json")
        return plain


_ADAPTER: TypeAdapter[Certificate] = TypeAdapter(Certificate)


def claim(counted: Counted, level: float, *, trust_judge: bool = False) -> Claim:
    """Compute what these requests prove at that confidence, the judge corrected or trusted."""
    groups = counted.groups
    requests = np.array([float(counted.requests)])
    expected = np.array([counted.expected])
    found = bounds(requests, expected, groups, level, trust_judge=trust_judge)
    low, high = float(found.low[0]), float(found.high[0])
    interval = Interval(low, high)
    labelled = sum(int(each.count[0]) for each in groups if each.word is not None)
    graded = [each for each in groups if each.grade is not None]
    return Claim(
        alpha=counted.alpha,
        requests=counted.requests,
        expected=counted.expected,
        told=labelled,
        graded=sum(int(each.count[0]) for each in graded),
        paired=sum(int(each.count[0]) for each in graded if each.word is not None),
        sampling=found.sampling,
        rate=float(found.rate[0]),
        low=low,
        high=high,
        verdict=verdict(interval, counted.alpha),
        kept_within_points=points_below(interval, counted.alpha),
        assumed=_assumed(found.sampling, labelled, counted.requests, trust_judge),
        said=tuple(
            ClaimGroup(
                each.word,
                each.grade,
                each.expected,
                each.weight,
                each.probability,
                int(each.count[0]),
            )
            for each in groups
        ),
        failed=counted.failed,
        answered_share=counted.requests / (counted.requests + counted.failed),
    )


def _assumed(sampling: Sampling, labels: int, requests: int, trust_judge: bool) -> tuple[str, ...]:
    """Name a claim's assumptions; if all requests have a word, only that words are true."""
    if labels == requests:
        return (WORDS_ARE_TRUE,)
    if sampling is not Sampling.JUDGE:
        return (*ASSUMED[sampling], WORDS_ARE_TRUE, LABELS_ARE_IN)
    of_users = (WORDS_ARE_TRUE,) if labels else ()
    of_the_judge = JUDGE_IS_ALIKE if labels and not trust_judge else JUDGE_IS_RIGHT
    return (*ASSUMED[sampling], *of_users, of_the_judge, LABELS_ARE_IN)


class Terms(TypedDict, total=False):
    """The terms of a certificate: its confidence ``level``; ``wait``, how long labels may take, so
    that younger requests are left out; the ``window`` of newest requests; whether to
    ``trust_judge``; the time ``now``; and the limit ``seconds`` of the reading."""

    level: float
    wait: timedelta
    window: int
    trust_judge: bool
    now: datetime | None
    seconds: float


async def certificate_of(
    database: str, zoo: str, since: date | None = None, **terms: Unpack[Terms]
) -> Certificate:
    """Certify a zoo in the database at an SQLAlchemy URL, or in the SQLite one at a path, from the
    beginning of ``since``; over all its days in the log if that is None.

    Raises NoCertificateError, UnreadableDatabaseError and ReadingTakesTooLongError.
    """
    async with reading(database) as engine:
        return await certify(engine, zoo, since, **terms)


async def certify(
    engine: AsyncEngine, zoo: str, since: date | None = None, **terms: Unpack[Terms]
) -> Certificate:
    """Certify the same from an open database."""
    level, window = terms.get("level", LEVEL), terms.get("window", WINDOW)
    trust_judge = terms.get("trust_judge", False)
    made_at = terms.get("now") or datetime.now(UTC)
    longest = terms.get("seconds", LONGEST_SECONDS)
    async with engine.connect() as connection, one_moment(connection, longest):
        span = await span_of(connection, zoo, since, made_at - terms.get("wait", timedelta()))
        whole = await counted_since(connection, zoo, span)
        last = await counted_last(connection, zoo, window, whole)
    return Certificate(
        zoo=zoo,
        level=level,
        made_at=made_at,
        since=span.since,
        until=span.until,
        window=window,
        promises=_promises(whole, last, level, trust_judge),
        sql=_shown(labelled_since(zoo, span), engine),
        expected_sql=_shown(expected_since(zoo, span), engine),
    )


def _promises(
    whole: Mapping[str, Counted], last: Mapping[str, Counted], level: float, trust_judge: bool
) -> tuple[Promise, ...]:
    if not whole:
        raise NoCertificateError("no request of a promise was answered in that time")
    return tuple(
        Promise(
            name,
            claim(counted, level, trust_judge=trust_judge),
            claim(last[name], level, trust_judge=trust_judge) if name in last else None,
        )
        for name, counted in whole.items()
    )


def _shown(query: Select[Any], engine: AsyncEngine) -> str:
    """Return the SQL of a statement, with all its values, in the dialect of this database."""
    return str(query.compile(dialect=engine.dialect, compile_kwargs={"literal_binds": True}))


def page(certificate: Certificate) -> str:
    """Write the page of Markdown."""
    return "\n\n".join(lines("certificate/page.j2", found=certificate, widest=WIDEST)) + "\n"
