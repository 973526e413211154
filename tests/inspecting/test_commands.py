"""`messplus requests`, of all and of one, as a user runs them."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.figures.words import figure, moment
from litellm_messplus.runtime.vocabulary import CallStatus, Failure
from tests.inspecting.test_explanations import answer_of
from tests.support.builders import NOW, request
from tests.support.commands import refusal, shown
from tests.support.history import LARGEST, SMALL, ZOO, History, make_history, migrated
from tests.support.http_server import Answer, serving

ANSWERED = "r00001"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LITELLM_MASTER_KEY", raising=False)
    return tmp_path


@pytest.fixture(scope="module")
def url(database: Path) -> Iterator[str]:
    """A server that answers as the route of a proxy on the database does."""
    answers = {
        f"/messplus/requests/{each}": asyncio.run(answer_of(database, each))
        for each in ("r00000", ANSWERED)
    }

    def answer(method: str, path: str) -> Answer:
        if path in answers:
            return Answer(answers[path])
        return Answer({"detail": "no request of this key is known as x"}, 404)

    with serving(answer) as port:
        yield f"http://127.0.0.1:{port}"


def test_explain_from_a_database(database: Path) -> None:
    output = shown("requests", ANSWERED, "--database", database)

    for words in ("Reason for", "expected", "other prices", "calls", "labels", "stand out"):
        assert words in output, words


@pytest.mark.parametrize("given", ["r00000", ANSWERED])
def test_a_proxy_tells_the_same_but_for_the_prompt(database: Path, url: str, given: str) -> None:
    of_proxy = json.loads(shown("requests", given, "--url", url, "--key", "sk-1", "--json"))
    of_database = json.loads(shown("requests", given, "--database", database, "--json"))

    assert "does not send" in of_proxy.pop("prompt")["note"]
    assert of_database.pop("prompt")["note"] is None
    for found in (of_proxy, of_database):
        for row in (found["request"], *found["calls"], *found["labels"]):
            for name in ("created_at", "ended_at"):
                row.pop(name, None)
    for ours, theirs in zip(of_proxy["labels"], of_database["labels"], strict=True):
        if not ours["call_id"].endswith(".0"):
            assert ours.pop("counts") is None
            theirs.pop("counts")
    assert of_proxy == of_database


def test_explain_from_a_proxy_says_what_is_left_out(url: str) -> None:
    assert "does not send the numbers of the prompt" in " ".join(
        shown("requests", ANSWERED, "--url", url, "--key", "sk-1").split()
    )


def test_what_explain_refuses(database: Path, url: str) -> None:
    assert "ID: given 'nobody'; allowed:" in refusal("requests", "nobody", "--database", database)
    assert "not both" in refusal("requests", ANSWERED, "--url", url, "--database", database)
    assert "ID: given ' '" in refusal("requests", " ", "--database", database)
    assert "there is no database" in refusal("requests", ANSWERED, "--database", "no.db")
    assert "no key" in refusal("requests", ANSWERED, "--url", url)
    assert "option of the list" in refusal("requests", ANSWERED, "--unsatisfied")
    assert "option of the list" in refusal("requests", ANSWERED, "--failed")
    assert "allowed: one of them" in refusal("requests", "--failed", "--unsatisfied")
    assert "--url needs the ID" in refusal("requests", "--url", url)
    assert "404: no request of this key" in refusal("requests", "x", "--url", url, "--key", "sk-1")


UNKNOWN_KEY = Answer({"error": {"message": "No connected db.", "type": "no_db_connection"}}, 400)
"""The answer of LiteLLM without a database to a key that it does not know."""


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer({}, 401), "refuses the key: give another with --key (it says: status 401)"),
        (Answer({"detail": "only an administrator"}, 403), "--key (it says: only an administrator"),
        (UNKNOWN_KEY, "refuses the key: give another with --key (it says: No connected db.)"),
        (Answer({"detail": "Not Found"}, 404), "runs without the plugin"),
        (Answer({"detail": "too much"}, 429), "answered 429: too much"),
        (Answer({"detail": [{"loc": ["body", "id"], "msg": "bad"}]}, 422), "422: body.id: bad"),
        (Answer([1], 500), "answered 500"),
        (Answer({"levels": 3}), "is not a proxy with this version of the plugin"),
        (Answer(None), "is not a proxy with this version of the plugin"),
    ],
)
def test_what_a_proxy_may_say_instead(answer: Answer, expected: str) -> None:
    with serving(lambda method, path: answer) as port:
        url = f"http://127.0.0.1:{port}"
        assert expected in refusal("requests", "r1", "--url", url, "--key", "sk-1")
        assert expected in refusal("status", "--ui", "--url", url, "--key", "sk-1")


def test_a_proxy_without_a_page_is_distinguished_from_others() -> None:
    with serving(lambda method, path: Answer({"detail": "Not Found"}, 404)) as port:
        url = f"http://127.0.0.1:{port}"
        assert "--url and --key alone" in refusal("status", "--ui", "--json", "--url", url)
        assert "has no page" in refusal("status", "--ui", "--url", url, "--key", "sk-1")


def test_where_no_proxy_is() -> None:
    assert "no proxy answers on" in refusal("requests", "r1", "--url", "nonsense", "--key", "sk-1")


def test_the_newest_requests_come_first(database: Path, recorded: History) -> None:
    found = json.loads(shown("requests", "--database", database, "--last", "1000", "--json"))

    assert [each["request_id"] for each in found] == [
        request.request_id for request in recorded.requests[::-1]
    ]
    served = {each.request_id: each for each in recorded.requests}
    for each in found:
        assert each["reason"] == served[each["request_id"]].reason
        verdict = recorded.verdict(f"{each['request_id']}.0")
        assert each["satisfied"] == (None if verdict is None else verdict.value)


def test_requests_are_narrowed(database: Path) -> None:
    def narrowed(*arguments: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(
            shown("requests", "--database", database, *arguments, "--json")
        )
        return found

    everything = narrowed("--last", "1000")
    unsatisfied = narrowed("--unsatisfied", "--last", "1000")
    of_small = narrowed("--model", SMALL, "--zoo", ZOO, "--last", "1000")

    assert unsatisfied == [each for each in everything if (each["satisfied"] or 0) < 0.5
                           and each["satisfied"] is not None]  # fmt: skip
    assert of_small == [each for each in everything if SMALL in (each["chosen"], each["served"])]
    assert unsatisfied
    assert of_small
    assert len(narrowed("--model", LARGEST, "--last", "3")) == 3
    assert len(narrowed()) == 20


@pytest.mark.parametrize(("given", "expected"), [("ke", 3), ("key-b", 1), ("chat", 2), ("cha", 0)])
def test_a_keys_requests_are_found_by_alias(elsewhere: Path, given: str, expected: int) -> None:
    of_keys = [
        request("r1", key_hash="key-a", key_alias="chat", expected_t=1),
        request("r2", key_hash="key-a", key_alias="chat", expected_t=2),
        request("r3", key_hash="key-b", expected_t=3),
    ]
    history = History()
    history.requests = of_keys
    migrated(elsewhere / "messplus.db", history)

    found = json.loads(shown("requests", "--of-key", given, "--json"))

    assert len(found) == expected


def test_those_that_failed_name_who_did(elsewhere: Path) -> None:
    history = make_history()
    broken = history.served(history.requests[-1])
    said = replace(broken, status=CallStatus.FAILURE, failure=Failure.NO_DEPLOYMENT)
    history.calls[history.calls.index(broken)] = said
    migrated(elsewhere / "messplus.db", history)

    found, *others = json.loads(shown("requests", "--failed", "--json"))
    assert found["request_id"] == broken.request_id
    assert {each["failure"] for each in others} == {"deadline"}
    assert "failed: no deployment" in shown("requests", "--failed")
    assert "answered" in shown("requests")


ID = "18eab06e-2030-4f0e-9d2b-5a0fd8a3c9b{}"


def narrow(*arguments: str | Path) -> list[str]:
    """The lines of a terminal of 80 columns."""
    lines = shown(*arguments, columns=80).splitlines()
    assert all(len(line) <= 80 for line in lines)
    return lines


def test_in_eighty_columns_every_id_can_be_copied_into_explain(elsewhere: Path) -> None:
    ids = [ID.format(number) for number in range(5)]
    history = History()
    history.requests = [request(each, expected_t=t) for t, each in enumerate(ids, 1)]
    migrated(elsewhere / "messplus.db", history)

    lines = narrow("requests")

    assert [line for line in lines if line in ids] == ids[::-1]
    assert all(f"Request {each} of " in " ".join(narrow("requests", each)) for each in ids)
    assert sum(f"time, UTC {moment(NOW)}" in line for line in lines) == len(ids)


def test_in_eighty_columns_no_figure_of_an_explanation_is_cut(database: Path) -> None:
    text = "\n".join(narrow("requests", ANSWERED, "--database", database))
    found = json.loads(shown("requests", ANSWERED, "--database", database, "--json"))

    assert "…" not in text
    for each in found["candidates"]:
        assert each["candidate"] in text
        assert figure(each["cost"]) in text
    for label in found["labels"]:
        assert label["created_at"][:19].replace("T", " ") in text


def test_no_requests(elsewhere: Path) -> None:
    migrated(elsewhere / "messplus.db", History())

    assert shown("requests", "--zoo", "any").strip() == "no such requests"


@pytest.mark.parametrize("last", ["0", "1001"])
def test_the_number_of_requests_is_bounded(database: Path, last: str) -> None:
    line = refusal("requests", "--database", database, "--last", last)

    assert line == f"messplus: --last: given {last}; allowed: 1 to 1000"


def test_names_that_are_not_there(database: Path) -> None:
    assert f"--zoo: given 'x'; allowed: {ZOO}" in refusal(
        "requests", "--database", database, "--zoo", "x"
    )
    line = refusal("requests", "--database", database, "--model", "x")
    assert "--model: given 'x'; allowed: " in line
    assert SMALL in line
