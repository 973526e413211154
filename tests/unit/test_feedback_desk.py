"""Whose request an id is: remembered by this worker, or in the log."""

from typing import cast

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.errors import NotYourRequestError
from litellm_messplus.journal import Journal
from litellm_messplus.proxy.authentication import Caller
from litellm_messplus.proxy.feedback import FeedbackDesk
from litellm_messplus.proxy.open_requests import OpenRequest, OpenRequests
from litellm_messplus.proxy.response_bias import ResponseBias
from litellm_messplus.records import RequestRecord
from litellm_messplus.store import log
from tests.unit.builders import LARGE, request

REPEATED = "litellm-chosen-by-the-client"


def asked(request_id: str, key: str) -> RequestRecord:
    return request(request_id, key_hash=key, litellm_call_id=REPEATED)


def desk_of(database: AsyncEngine, *remembered: RequestRecord) -> FeedbackDesk:
    """Of a worker that has decided these lately."""
    opened = OpenRequests()
    for record in remembered:
        opened.add(OpenRequest(record, (LARGE,)), {})
    return FeedbackDesk(database, cast(Journal, None), opened, cast(ResponseBias, None))


async def test_an_id_that_others_use_here_too_still_finds_ones_own_request_in_the_log(
    database: AsyncEngine,
) -> None:
    """It was decided by another worker, or before a restart."""
    await log.append(database, [asked("mine", "alice")])
    desk = desk_of(database, asked("theirs", "bob"))

    assert (await desk.find(REPEATED, Caller("alice", is_admin=False))).request_id == "mine"


async def test_a_request_that_is_remembered_here_needs_no_log(database: AsyncEngine) -> None:
    desk = desk_of(database, asked("mine", "alice"), asked("theirs", "bob"))

    assert (await desk.find(REPEATED, Caller("alice", is_admin=False))).request_id == "mine"


async def test_others_requests_stay_theirs(database: AsyncEngine) -> None:
    await log.append(database, [asked("mine", "alice")])
    desk = desk_of(database, asked("theirs", "bob"))

    with pytest.raises(NotYourRequestError):
        await desk.find(REPEATED, Caller("carol", is_admin=False))
