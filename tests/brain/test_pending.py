"""What the brain remembers of a request until its calls have ended."""

import pytest

from litellm_messplus.brain import pending as module
from litellm_messplus.brain.pending import Pending, PendingRequests
from litellm_messplus.core.encoder import Conversation, Turn
from litellm_messplus.labels.source import JudgedRequest
from litellm_messplus.records import CallRecord, RequestRecord
from litellm_messplus.runtime.stand_ins import replace
from litellm_messplus.runtime.vocabulary import CallRole
from tests.support.builders import build_engine, request, served_call

ENGINE = build_engine()
ASKED = Conversation(turns=(Turn("user", "What is 2 + 2?"),))
JUDGED = JudgedRequest("r1", "zoo", "default", "key", ASKED, {}, {})


def nothing(record: RequestRecord) -> None:
    raise AssertionError(f"{record.request_id} was logged when it was ordered")


def pending(request_id: str = "r1", response_id: str | None = None, calls: int = 1) -> Pending:
    return Pending(request(request_id), ENGINE, judged=JUDGED, response_id=response_id, calls=calls)


def add(requests: PendingRequests, *added: Pending) -> None:
    for each in added:
        requests.add(each)


def unseen() -> CallRecord:
    return replace(served_call("r1"), role=CallRole.EXPLORATION)


@pytest.mark.parametrize("given", ["r1", "litellm-r1", "chatcmpl-1"])
def test_any_of_its_ids_finds_it(given: str) -> None:
    requests, mine = PendingRequests(nothing), pending("r1", "chatcmpl-1")
    add(requests, mine, pending("r2", "chatcmpl-2"))
    assert set(requests.find(given)) == {mine}


def test_a_repeated_id_finds_the_newest_first() -> None:
    requests = PendingRequests(nothing)
    first, second = pending("r1", "chatcmpl-1"), pending("r2", "chatcmpl-1")
    add(requests, first, second)
    assert list(requests.find("chatcmpl-1")) == [second, first]


@pytest.mark.parametrize("given", ["None", ""])
def test_no_id_finds_nothing(given: str) -> None:
    requests = PendingRequests(nothing)
    add(requests, pending())
    assert list(requests.find(given)) == []


def test_only_ended_ones_are_forgotten() -> None:
    requests = PendingRequests(nothing, remembered=1)
    add(requests, pending("r1"), pending("r2"))
    assert requests.get("r1") is not None
    for name in ("r1", "r2"):
        requests.ended(served_call(name))
    assert requests.get("r1") is None
    assert requests.get("r2") is not None


def test_open_ones_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a killed worker never end."""
    monkeypatch.setattr(module, "OPEN", 2)
    requests = PendingRequests(nothing, remembered=1)
    add(requests, *(pending(f"r{number}") for number in range(3)))
    assert [requests.get(f"r{number}") is not None for number in range(3)] == [False, True, True]


def test_words_are_dropped_after_the_last_call() -> None:
    requests, mine = PendingRequests(nothing), pending(calls=2)
    add(requests, mine)
    requests.ended(served_call("r1"))
    assert mine.judged is not None, "an unseen call has not ended"
    requests.ended(unseen())
    assert mine.judged is None


def test_a_replaced_answer_is_followed_by_another() -> None:
    requests, mine = PendingRequests(nothing), pending()
    add(requests, mine)
    requests.ended(replace(served_call("r1"), role=CallRole.REPLACED))
    assert mine.judged is not None
    requests.ended(served_call("r1"))
    assert mine.judged is None
