"""Finding a request again by the mark in LiteLLM's metadata, which a client cannot forge."""

from typing import Any

import pytest

from litellm_messplus.brain.messages import Order
from litellm_messplus.serving.open_requests import METADATA_KEY, OpenRequest, OpenRequests
from tests.support.builders import request


def opened(request_id: str = "r1", **record: Any) -> OpenRequest:
    return OpenRequest(Order(request(request_id, **record)))


def add(requests: OpenRequests, *added: OpenRequest) -> dict[str, Any]:
    """Returns the metadata of the last, as marked."""
    metadata: dict[str, Any] = {}
    for each in added:
        metadata = {"user_api_key_hash": "key"}
        requests.add(each, metadata)
    return metadata


def test_the_mark_finds_the_request_of_its_call() -> None:
    requests, mine = OpenRequests(), opened()
    metadata = add(requests, opened("r0"), mine)
    assert metadata["user_api_key_hash"] == "key"
    assert requests.get(metadata, "litellm-r1") is mine


@pytest.mark.parametrize("call_id", ["litellm-r2", "", None])
def test_a_forged_mark_finds_nothing(call_id: str | None) -> None:
    """Whoever writes another's request id into the metadata still makes a call of their own."""
    requests = OpenRequests()
    add(requests, opened("r1"), opened("r2"))
    assert requests.get({METADATA_KEY: {"request_id": "r1"}}, call_id) is None


@pytest.mark.parametrize("secret", [None, "", "r1", ["r1"]], ids=repr)
def test_a_client_that_repeats_both_ids_of_its_own_request_makes_a_new_one(secret: object) -> None:
    """Else it would be served by the earlier decision, as often as it likes and not logged."""
    requests = OpenRequests()
    add(requests, opened("r1"))
    forged = {METADATA_KEY: {"request_id": "r1", "secret": secret}}
    assert requests.get(forged, "litellm-r1") is None
    assert requests.get({METADATA_KEY: {"request_id": "r1"}}, "litellm-r1") is None


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {},
        "r1",
        {METADATA_KEY: None},
        {METADATA_KEY: "r1"},
        {METADATA_KEY: {}},
        {METADATA_KEY: {"request_id": None}},
        {METADATA_KEY: {"request_id": ["r1"]}},
        {METADATA_KEY: {"request_id": {"r1": 1}}},
        {METADATA_KEY: {"request_id": "r9"}},
    ],
    ids=repr,
)
def test_garbage_in_the_metadata_finds_nothing(metadata: object) -> None:
    requests = OpenRequests()
    add(requests, opened())
    assert requests.get(metadata, "litellm-r1") is None


def test_the_oldest_are_forgotten() -> None:
    requests = OpenRequests(remembered=2)
    every = [opened(name) for name in ("r1", "r2", "r3")]
    marks = [add(requests, each) for each in every]
    assert requests.get(marks[0], "litellm-r1") is every[0], "it has not ended"
    assert [requests.end(each) for each in (*every, every[0])] == [True, True, True, False]
    found = [requests.get(mark, f"litellm-r{number}") for number, mark in enumerate(marks, start=1)]
    assert [None if each is None else each.record.request_id for each in found] == [
        None,
        "r2",
        "r3",
    ]


@pytest.mark.parametrize(("key", "is_found"), [("other", False), ("key", True)])
def test_another_keys_request_of_the_same_call_id_does_not_fail(key: str, is_found: bool) -> None:
    requests, mine = OpenRequests(), opened("r1", key_hash="key")
    add(requests, mine)
    found = requests.of_failure({"litellm_call_id": "litellm-r1"}, key)
    assert (found is mine) == is_found
