"""What a request asks for, by header or metadata, and what it gets: as far as the operator lets it,
and always in a stream of its own."""

from pathlib import Path
from typing import Any

import pytest
from litellm import BadRequestError

from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import ConfigurationError, RefusedError
from litellm_messplus.serving.surfaces.asking import HEADERS, METADATA, grant
from litellm_messplus.serving.surfaces.request import IncomingRequest, read_request
from litellm_messplus.settings.load import load_settings
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store.tables import requests
from tests.support.builders import build_zoo
from tests.support.in_process import deployment, written
from tests.support.journey import arguments_of, journey

LEVELS: dict[str, Any] = {"service_levels": {"gold": {"alpha": 0.95}, "batch": {"alpha": 0.5}}}
MAY_KEY = "messplus_callers_may"
ALL = ["gold", "batch", "max_cost", "deadline_seconds"]
LIMITS = ALL[2:]
SMALL = "openai/small"


def asking(call_type: str = "acompletion", **metadata: Any) -> IncomingRequest:
    found = read_request([], arguments_of(call_type=call_type, metadata=metadata))
    assert found is not None
    return found


def by_header(**asked: str) -> dict[str, Any]:
    return {"headers": {HEADERS[name]: value for name, value in asked.items()}}


def by_metadata(**asked: Any) -> dict[str, Any]:
    return {METADATA[name]: value for name, value in asked.items()}


@pytest.fixture
def zoo() -> Zoo:
    return build_zoo(**LEVELS, callers_may=["batch"])


@pytest.mark.parametrize(
    ("metadata", "level", "granted"),
    [
        (by_header(service_level="batch"), "batch:asked", {"service_level": "batch"}),
        (by_metadata(service_level="batch"), "batch:asked", {"service_level": "batch"}),
        (
            by_header(service_level="batch") | by_metadata(service_level="gold"),
            "batch:asked",
            {"service_level": "batch"},
        ),
        (by_header(service_level="gold"), "default", {}),
        (by_header(max_cost="0.001"), "default", {}),
        (
            {"user_api_key_metadata": {MAY_KEY: ["gold"]}} | by_header(service_level="gold"),
            "gold:asked",
            {"service_level": "gold"},
        ),
        (
            {"user_api_key_metadata": {MAY_KEY: ["gold"]}} | by_header(service_level="batch"),
            "default",
            {},
        ),
        (
            {"user_api_key_team_metadata": {MAY_KEY: ["gold"]}} | by_header(service_level="gold"),
            "gold:asked",
            {"service_level": "gold"},
        ),
        (
            {
                "user_api_key_metadata": {MAY_KEY: []},
                "user_api_key_team_metadata": {MAY_KEY: ["gold"]},
            }
            | by_header(service_level="gold"),
            "default",
            {},
        ),
        (
            {"user_api_key_metadata": {MAY_KEY: ["max_cost", "deadline_seconds"]}}
            | by_header(max_cost="0.001", deadline_seconds="2.5"),
            "default:asked",
            {"max_cost": 0.001, "deadline_seconds": 2.5},
        ),
        (
            {"user_api_key_metadata": {MAY_KEY: "gold"}} | by_header(service_level="gold"),
            "gold:asked",
            {"service_level": "gold"},
        ),
        (
            {"user_api_key_metadata": {MAY_KEY: False}} | by_header(service_level="batch"),
            "default",
            {},
        ),
        ({MAY_KEY: ["gold"]} | by_header(service_level="gold"), "default", {}),
    ],
)
def test_a_request_gets_what_its_key_may_ask_for(
    zoo: Zoo, metadata: dict[str, Any], level: str, granted: dict[str, Any]
) -> None:
    counters = Counters()
    found = grant(zoo, zoo.levels["default"], asking(**metadata), counters)
    assert (found.level.name, found.granted) == (level, granted)
    assert found.level == zoo.streams[level]
    assert found.limits == {name: each for name, each in granted.items() if name in LIMITS}
    assert found.asked is not None
    assert counters.as_dict() == ({} if granted else {"asked_in_vain": 1})


def test_what_is_asked_is_read_on_every_surface(zoo: Zoo) -> None:
    for call_type in ("acompletion", "anthropic_messages", "aresponses", "atext_completion"):
        request = asking(call_type, **by_header(service_level="batch"))
        assert grant(zoo, zoo.levels["default"], request, Counters()).level.name == "batch:asked"


def test_a_request_that_asks_for_nothing_or_for_its_own_level_counts_as_ever(zoo: Zoo) -> None:
    counters = Counters()
    nothing = grant(zoo, zoo.levels["gold"], asking(), counters)
    assert (nothing.level, nothing.asked, nothing.granted) == (zoo.levels["gold"], None, None)
    own = grant(zoo, zoo.levels["batch"], asking(**by_header(service_level="batch")), counters)
    assert own.level == zoo.levels["batch"]
    assert counters.as_dict() == {}


@pytest.mark.parametrize("callers_may", [ALL, []])
@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (by_header(max_cost="cheap"), "x-messplus-max-cost, .* given 'cheap'; .* above zero"),
        (by_header(deadline_seconds="0"), "x-messplus-deadline-seconds, .* given '0'; .* above"),
        (by_metadata(max_cost=-1), "messplus_max_cost in the metadata: given -1; .* above zero"),
        (by_header(service_level="glod"), "given 'glod'; allowed: default or gold or batch"),
    ],
)
def test_a_value_that_no_key_could_be_granted_is_refused_with_the_reason(
    asked: dict[str, Any], words: str, callers_may: list[str]
) -> None:
    zoo, counters = build_zoo(**LEVELS, callers_may=callers_may), Counters()
    with pytest.raises(RefusedError, match=words):
        grant(zoo, zoo.levels["default"], asking(**asked), counters)
    assert counters.as_dict() == {"asked_wrongly": 1}


@pytest.mark.parametrize("name", ["service_level", "max_cost"])
@pytest.mark.parametrize("sent", ["x" * 10_000, 10**400, float("nan"), True, [], {"a": "\x00"}])
def test_whatever_a_client_sends_the_reason_is_short(name: str, sent: Any) -> None:
    zoo = build_zoo(**LEVELS, callers_may=ALL)
    with pytest.raises(RefusedError) as caught:
        grant(zoo, zoo.levels["default"], asking(**by_metadata(**{name: sent})), Counters())
    assert len(str(caught.value)) < 250
    assert "\x00" not in str(caught.value)


def test_a_promise_to_those_who_ask_is_that_of_the_level() -> None:
    zoo = build_zoo(**LEVELS)
    assert zoo.streams["gold:asked"].alpha == zoo.levels["gold"].alpha == 0.95
    assert zoo.streams["default:asked"].alpha == zoo.levels["default"].alpha
    assert not any(name.endswith(":asked") for name in zoo.levels)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (
            {"callers_may": ["silver"]},
            "callers_may: given ['silver']; allowed: default, max_cost, deadline_seconds",
        ),
        ({"callers_may": "gold"}, "callers_may: given 'gold'; allowed: a list"),
        ({"unmet": "fail"}, "unmet: given 'fail'; allowed: 'serve' or 'refuse'"),
        ({"service_levels": {"max_cost": {"alpha": 0.9}}}, "no service level 'max_cost'"),
        ({"service_levels": {"gold:asked": {"alpha": 0.9}}}, "no service level 'gold:asked'"),
        (
            {"callers_may": ["max_cost"], "conversations": {"unit": "conversation"}},
            "callers_may: given ['max_cost']; allowed: nothing, where",
        ),
    ],
)
def test_what_no_request_could_ask_for_is_refused_at_the_start(
    given: dict[str, Any], word: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_settings({"messplus": {"zoos": {"zoo": {"alpha": 0.7, **given}}}})
    assert word in str(caught.value)


async def test_what_was_asked_and_granted_is_logged(tmp_path: Path) -> None:
    async with journey(tmp_path, {**LEVELS, "callers_may": ALL}) as worker:
        await worker.ask(metadata={"user_api_key_hash": "key", **by_header(service_level="gold")})
        await worker.ask(metadata={"user_api_key_hash": "key"})
        await worker.settled()

    asked, plain = await written(tmp_path, requests)
    assert (asked.service_level, asked.alpha, asked.t) == ("gold:asked", 0.95, 1)
    assert (asked.asked, asked.granted) == ({"service_level": "gold"}, {"service_level": "gold"})
    assert (plain.service_level, plain.t, plain.asked, plain.granted) == ("default", 1, None, None)


COSTS = [deployment("small", 1e-6), deployment("large", 1e-4)]


async def test_candidates_expected_to_cost_more_are_gated(tmp_path: Path) -> None:
    """A first answer is expected to have 100 tokens: 0.0001 and 0.01 dollars."""
    async with journey(tmp_path, {"callers_may": LIMITS}, COSTS) as worker:
        worker.explores_nothing()
        for most in ("0.001", "0.001", "1"):
            await worker.ask(metadata={"user_api_key_hash": "k", **by_header(max_cost=most)})
        counted = worker.counters
        await worker.settled()

    *cheap, free = await written(tmp_path, requests)
    for row in cheap:
        assert (row.chosen, row.reason, row.eligible) == (SMALL, "forced", [SMALL])
        assert row.gated_by == ["max_cost"]
        assert row.service_level == "default:asked"
    assert (free.eligible, free.gated_by) == (None, None)
    assert counted == {}


async def test_a_retry_goes_to_a_gated_candidate_last(tmp_path: Path) -> None:
    three = [*COSTS, deployment("small", 1e-6, "again")]
    async with journey(tmp_path, {"callers_may": LIMITS}, three) as worker:
        asked = await worker.ask(metadata={"user_api_key_hash": "k", **by_header(max_cost="0.001")})
        assert asked.ranked[-1] == "large"
        again = await worker.ask(arguments=asked.failed_at("small"))
        assert again.ranked == ["again", "small", "large"]


async def test_where_no_candidate_keeps_the_cost_the_cheapest_serves(tmp_path: Path) -> None:
    async with journey(tmp_path, {"callers_may": LIMITS}, COSTS) as worker:
        worker.explores_nothing()
        await worker.ask(metadata={"user_api_key_hash": "k", **by_header(max_cost="1e-9")})
        assert worker.counters == {"asked_unmet": 1}
        await worker.settled()

    (row,) = await written(tmp_path, requests)
    assert (row.chosen, row.gated_by) == (SMALL, ["max_cost"])


async def test_where_the_zoo_says_so_it_is_refused_instead(tmp_path: Path) -> None:
    async with journey(tmp_path, {"callers_may": LIMITS, "unmet": "refuse"}, COSTS) as worker:
        with pytest.raises(BadRequestError, match="max_cost: given 1e-09; no model") as caught:
            await worker.ask(metadata={"user_api_key_hash": "k", **by_header(max_cost="1e-9")})
        assert caught.value.status_code == 400
        await worker.ask(metadata={"user_api_key_hash": "k", **by_header(max_cost="1")})
        assert worker.counters == {"asked_unmet": 1}
        await worker.settled()

    assert len(await written(tmp_path, requests)) == 1


async def test_a_deadline_gates_those_that_took_longer(tmp_path: Path) -> None:
    """As learned from their calls: the large one took three seconds, the small one a second."""
    async with journey(tmp_path, {"callers_may": LIMITS}, COSTS) as worker:
        worker.explores_nothing()
        for number in range(60):
            name, seconds = (("small", 1.0), ("large", 3.0))[number % 2]
            asked = await worker.ask()
            await worker.answers(asked, name, endTime=1.0 + seconds)
        await worker.settled()
        for deadline in ("2", "10", "0.01"):
            given = by_header(deadline_seconds=deadline)
            await worker.ask(metadata={"user_api_key_hash": "k", **given})
        assert worker.counters == {"asked_unmet": 1}
        await worker.settled()

    *_, soon, late, never = await written(tmp_path, requests)
    assert (soon.chosen, soon.gated_by, soon.eligible) == (SMALL, ["deadline_seconds"], [SMALL])
    assert late.eligible is None
    assert (never.chosen, never.eligible) == (SMALL, [SMALL])
