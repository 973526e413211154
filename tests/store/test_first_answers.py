"""An example has what the answer looks like, and the answer that was looked at before it."""

from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.core.answer import Answer, read_answer
from litellm_messplus.records import Record, replaced_call_id
from litellm_messplus.store import log
from tests.support.builders import (
    LARGE,
    SMALL,
    exploration_call,
    label,
    looks,
    replaced_call,
    request,
    served_call,
)
from tests.support.folding import read

FIRST, SERVED, UNSEEN = looks("first"), looks("as served"), looks("an unseen answer")


def numbers(text: str) -> bytes:
    return read_answer(Answer(text)).tobytes()


async def examples(database: AsyncEngine, *records: Record) -> list[dict[str, Any]]:
    """Of every entry after the request's own."""
    await log.append(database, [request(), *records])
    return [each["example"] for each in await read(database, 1, 1 + len(records))]


async def test_an_example_has_the_answer_of_its_call(database: AsyncEngine) -> None:
    ended, judged = await examples(database, served_call(**SERVED), label())

    assert ended["answer"] == judged["answer"] == numbers("as served")
    assert (ended["before"], judged["before"]) == (None, None)


async def test_an_unseen_call_comes_after_the_served_one(database: AsyncEngine) -> None:
    records = (served_call(**SERVED), exploration_call(**UNSEEN), label(number=1))
    served, unseen, judged = await examples(database, *records)

    assert served["before"] is None
    assert unseen["before"] == judged["before"] == (LARGE, numbers("as served"))
    assert unseen["answer"] == numbers("an unseen answer")


async def test_one_that_ended_first_comes_after_none_until_its_label(database: AsyncEngine) -> None:
    records = (exploration_call(**UNSEEN), served_call(**SERVED), label(number=1))
    unseen, served, judged = await examples(database, *records)

    assert (unseen["before"], served["before"]) == (None, None)
    assert judged["before"] == (LARGE, numbers("as served"))


async def test_all_others_come_after_an_answer_that_was_replaced(database: AsyncEngine) -> None:
    records = (replaced_call(**FIRST), served_call(**SERVED), exploration_call(**UNSEEN))
    of_first = label(call_id=replaced_call_id("r1"), label_id="first")
    first, served, unseen, *judged = await examples(
        database, *records, label(), label(number=1), of_first
    )

    before = (SMALL, numbers("first"))
    assert [each["before"] for each in (first, served, unseen)] == [None, before, before]
    assert [each["before"] for each in judged] == [before, before, None]


@pytest.mark.parametrize("version", ["answer-0", None])
async def test_numbers_of_other_meaning_are_out(database: AsyncEngine, version: str | None) -> None:
    earlier = {**FIRST, "answer_version": version}
    first, served = await examples(database, replaced_call(**earlier), served_call(**SERVED))

    assert (first["answer"], served["before"]) == (None, None)
    assert served["answer"] == numbers("as served")


async def test_the_user_did_not_see_what_was_replaced(database: AsyncEngine) -> None:
    """So its label moves no queue; and it is no exploration's, whose labels show how many come."""
    of_first = label(call_id=replaced_call_id("r1"))
    await log.append(database, [request(), replaced_call(**FIRST), served_call(), of_first])
    *_, judged = await read(database, 3, 4)

    assert (judged["is_served"], judged["is_bought"]) == (False, True)
    assert judged["example"]["candidate"] == SMALL
