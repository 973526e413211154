"""A decision as an `order` on copies of LiteLLM's deployments."""

from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.serving.deployments.deployment import (
    best_of_order,
    led_by,
    only,
    pinned,
    ranked,
)


def deployment(identity: str, candidate: str, order: int | None = None) -> dict[str, Any]:
    params = {"model": candidate, "api_base": f"http://{identity}"}
    if order is not None:
        params["order"] = order  # type: ignore[assignment]
    return {"model_name": "zoo", "litellm_params": params, "model_info": {"id": identity}}


def orders(deployments: list[dict[str, Any]]) -> dict[str, int]:
    return {each["model_info"]["id"]: each["litellm_params"]["order"] for each in deployments}


def by_order(deployments: list[dict[str, Any]]) -> list[str]:
    """Ids, best first."""
    return sorted(found := orders(deployments), key=lambda identity: found[identity])


ZOO = [deployment("1", "a"), deployment("2", "b"), deployment("3", "c")]


def test_the_order_follows_the_ranking() -> None:
    assert by_order(ranked(ZOO, ["b", "c", "a"], tried=())) == ["2", "3", "1"]


def test_the_one_that_leads_comes_first_whatever_the_users_order() -> None:
    own = [deployment("1", "a", 1), deployment("2", "b", 2), deployment("3", "a", 1)]
    found = led_by(ranked(own, ["a", "b"], tried=()), "2")
    assert by_order([dict(each) for each in found]) == ["2", "1", "3"]
    assert led_by([], "2") == []


def test_replicas_share_an_order_so_that_litellm_balances_their_load() -> None:
    found = orders(ranked([*ZOO, deployment("4", "a")], ["a", "b", "c"], tried=()))
    assert found["1"] == found["4"] < found["2"] < found["3"]


def test_what_was_tried_comes_last_even_the_best() -> None:
    assert by_order(ranked(ZOO, ["a", "b", "c"], tried={"1"})) == ["2", "3", "1"]


def test_only_the_replica_that_failed_is_demoted() -> None:
    found = ranked([*ZOO, deployment("4", "a")], ["a", "b", "c"], tried={"1"})
    assert by_order(found) == ["4", "2", "3", "1"]


def test_all_tried_keep_the_order_of_the_ranking() -> None:
    assert by_order(ranked(ZOO, ["c", "a", "b"], tried={"1", "2", "3"})) == ["3", "1", "2"]


def test_the_users_own_order_counts_first_and_ours_within_it() -> None:
    own = [
        deployment("1", "a", order=2),
        deployment("2", "b", order=1),
        deployment("3", "c", order=1),
        deployment("4", "d"),
    ]
    assert by_order(ranked(own, ["a", "c", "b", "d"], tried=())) == ["4", "3", "2", "1"]


def test_a_tried_one_of_an_earlier_order_of_the_users_still_comes_before_a_later_order() -> None:
    own = [deployment("1", "a", order=1), deployment("2", "b", order=2)]
    assert by_order(ranked(own, ["a", "b"], tried={"1"})) == ["1", "2"]


def test_an_order_in_model_info_is_the_users_too() -> None:
    later = deployment("1", "a")
    later["model_info"]["order"] = 1
    assert by_order(ranked([later, deployment("2", "b")], ["a", "b"], tried=())) == ["2", "1"]


def test_a_deployment_outside_the_ranking_comes_behind_those_within() -> None:
    assert by_order(ranked(ZOO, ["c", "b"], tried=())) == ["3", "2", "1"]


@given(st.permutations(["a", "b", "c"]), st.sets(st.sampled_from(["1", "2", "3"])))
def test_the_deployments_are_copies_and_all_of_them(ranking: list[str], tried: set[str]) -> None:
    before = deepcopy(ZOO)
    found = ranked(ZOO, ranking, tried)
    assert before == ZOO
    for copied, original in zip(found, ZOO, strict=True):
        assert copied is not original
        del copied["litellm_params"]["order"]
        assert copied == original
    assert before == ZOO


def test_an_exploration_sees_the_replicas_of_its_candidate_alone() -> None:
    replica = deployment("4", "a")
    assert only([*ZOO, replica], "a") == [ZOO[0], replica]
    assert only(ZOO, "gone") == []


def test_in_a_fallback_to_the_users_order_the_best_candidate_within_it_serves() -> None:
    own = [
        deployment("1", "a", order=1),
        deployment("2", "b", order=2),
        deployment("3", "c", order=2),
        deployment("4", "c", order=2),
    ]
    assert best_of_order(own, ["a", "c", "b"], 2) == own[2:]
    assert best_of_order(own, ["a", "c", "b"], 1) == own[:1]


def test_where_nothing_of_the_order_is_ranked_litellm_keeps_its_choice() -> None:
    assert best_of_order(ZOO, ["a", "b", "c"], 7) == ZOO


def test_what_is_pinned_stays_on_its_deployment_while_that_is_there() -> None:
    replicas = [*ZOO, deployment("4", "a")]
    assert pinned(replicas, "4") == [replicas[3]]
    assert pinned(replicas, "gone") == pinned(replicas, None) == replicas


def test_what_is_barred_comes_behind_all_else_even_what_was_tried_and_any_order() -> None:
    own = [
        deployment("1", "a", order=-1),
        deployment("2", "b", order=2),
        deployment("3", "c", order=5),
    ]
    found = ranked(own, ["a", "b", "c"], tried={"2", "3"}, barred={"1"})
    assert by_order(found) == ["2", "3", "1"]


def test_in_a_fallback_to_an_order_of_barred_ones_the_others_take_their_place() -> None:
    own = [deployment("1", "a", order=1), deployment("2", "b", order=2)]
    found = [dict(each) for each in best_of_order(own, ["b", "a"], 1, barred={"1"})]
    assert orders(found) == {"2": 1}


def test_an_exploration_passes_a_barred_replica_by() -> None:
    replica = deployment("4", "a")
    assert only([*ZOO, replica], "a", barred={"1"}) == [replica]
