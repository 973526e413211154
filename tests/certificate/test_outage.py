"""Requests that failed are no unlabelled answers: an outage proves nothing."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.certificate.claim import COUNTED, STATUS_DIFFERS, Claim, certify, page
from litellm_messplus.certificate.reading import NoCertificateError
from litellm_messplus.records import Record
from litellm_messplus.runtime.vocabulary import CallStatus, level_before
from litellm_messplus.store import log
from tests.support.builders import label, request, served_call

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANSWERED, FAILURES = 200, 110


def answered(count: int = ANSWERED) -> Iterator[Record]:
    """Nine of ten have a verdict, and nine of ten of those satisfied."""
    for number in range(count):
        name = f"r{number}"
        yield request(name, created_at=AT)
        yield served_call(name)
        if number % 10:
            yield label(name, float(number % 9 > 0), created_at=AT)


def outage(count: int = FAILURES) -> Iterator[Record]:
    for number in range(count):
        name = f"failed{number}"
        yield request(name, created_at=AT + timedelta(minutes=1))
        yield served_call(name, status=CallStatus.FAILURE, candidate=None, cost=None)


async def claimed(database: AsyncEngine, *records: Record) -> Claim:
    await log.append(database, records)
    return await claim_now(database)


async def claim_now(database: AsyncEngine) -> Claim:
    found = await certify(database, "zoo", now=AT + timedelta(hours=1))
    return found.promises[0].since


async def test_an_outage_changes_the_answered_share_alone(database: AsyncEngine) -> None:
    before = await claimed(database, *answered())
    after = await claimed(database, *outage())

    assert after.failed == FAILURES
    assert after.answered_share == ANSWERED / (ANSWERED + FAILURES)
    assert replace(after, failed=0, answered_share=1.0) == before
    certificate = await certify(database, "zoo", now=AT + timedelta(hours=1))
    assert "110 requests failed: 64.5 % were answered." in page(certificate)
    assert "The claim is not about the failed ones." in page(certificate)


async def test_what_users_say_of_an_error_is_no_word_on_an_answer(database: AsyncEngine) -> None:
    before = await claimed(database, *answered(), *outage(1))
    angry = [label("failed0", value, created_at=AT) for value in (0.0,)]

    assert await claimed(database, *angry) == before


async def test_a_window_of_nothing_but_failures_has_no_claim(database: AsyncEngine) -> None:
    await log.append(database, [*answered(), *outage()])
    found = await certify(database, "zoo", now=AT + timedelta(hours=1), window=50)

    assert found.promises[0].last is None
    assert "Of the newest 50 none was answered." in page(found)


async def test_a_zoo_that_never_answered_has_no_certificate(database: AsyncEngine) -> None:
    await log.append(database, list(outage()))

    with pytest.raises(NoCertificateError, match="no request of a promise was answered"):
        await certify(database, "zoo", now=AT + timedelta(hours=1))


async def test_what_was_served_as_before_counts_towards_no_promise(database: AsyncEngine) -> None:
    before = await claimed(database, *answered())
    level = level_before("default")
    for number in range(20):
        watched = request(f"w{number}", created_at=AT, service_level=level)
        verdict = label(f"w{number}", 0.0, created_at=AT)
        await log.append(database, [watched, served_call(f"w{number}"), verdict])
    certificate = await certify(database, "zoo", now=AT + timedelta(hours=1))

    (promise,) = certificate.promises
    assert promise.since == before
    assert ":before" not in page(certificate).split("## The SQL")[0]


async def test_it_says_which_labels_count_and_how_status_differs(database: AsyncEngine) -> None:
    await log.append(database, list(answered()))
    certificate = await certify(database, "zoo", now=AT + timedelta(hours=1))

    assert COUNTED in page(certificate)
    assert STATUS_DIFFERS in page(certificate)
