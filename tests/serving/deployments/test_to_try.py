"""A decision as the deployments that LiteLLM may try next."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.serving.deployments.deployment import only, pinned, to_try


def deployment(identity: str, candidate: str, order: int | None = None) -> dict[str, Any]:
    params = {"model": candidate, "api_base": f"http://{identity}"}
    if order is not None:
        params["order"] = order  # type: ignore[assignment]
    return {"model_name": "zoo", "litellm_params": params, "model_info": {"id": identity}}


def ids(deployments: list[Any]) -> list[str]:
    return [each["model_info"]["id"] for each in deployments]


ZOO = [deployment("1", "a"), deployment("2", "b"), deployment("3", "c")]
REPLICA = deployment("4", "a")


def test_the_best_candidate_is_left_alone() -> None:
    assert ids(to_try(ZOO, ["b", "c", "a"])) == ["2"]


def test_all_replicas_are_left_for_litellm_to_balance() -> None:
    assert ids(to_try([*ZOO, REPLICA], ["a", "b", "c"])) == ["1", "4"]


def test_a_replica_follows_one_that_failed() -> None:
    assert ids(to_try([*ZOO, REPLICA], ["a", "b", "c"], failed={"1"})) == ["4"]


def test_the_next_candidate_follows_one_that_failed() -> None:
    assert ids(to_try(ZOO, ["a", "b", "c"], failed={"1"})) == ["2"]
    assert ids(to_try(ZOO, ["a", "b", "c"], failed={"1", "2"})) == ["3"]


def test_when_all_have_failed_the_best_is_tried_again() -> None:
    assert ids(to_try(ZOO, ["c", "a", "b"], failed={"1", "2", "3"})) == ["3"]


def test_the_users_first_order_counts_before_the_ranking() -> None:
    own = [
        deployment("1", "a", order=2),
        deployment("2", "b", order=1),
        deployment("3", "c", order=1),
        deployment("4", "d"),
    ]
    assert ids(to_try(own, ["d", "a", "c", "b"])) == ["3"]
    assert ids(to_try(own, ["d", "a", "c", "b"], failed={"2", "3"})) == ["1"]
    assert ids(to_try(own, ["d", "a", "c", "b"], failed={"1", "2", "3"})) == ["4"]


def test_an_order_in_model_info_is_the_users_too() -> None:
    first = deployment("1", "a")
    first["model_info"]["order"] = 1
    assert ids(to_try([first, deployment("2", "b")], ["b", "a"])) == ["1"]


def test_a_deployment_outside_the_ranking_follows_those_within() -> None:
    assert ids(to_try(ZOO, ["c", "b"], failed={"2", "3"})) == ["1"]


def test_without_a_ranking_litellm_chooses() -> None:
    assert to_try(ZOO, ()) == ZOO


def test_a_fallback_to_an_order_takes_the_best_of_it() -> None:
    own = [
        deployment("1", "a", order=1),
        deployment("2", "b", order=2),
        deployment("3", "c", order=2),
        deployment("4", "c", order=2),
    ]
    assert to_try(own, ["a", "c", "b"], order=2) == own[2:]
    assert to_try(own, ["a", "c", "b"], order=1) == own[:1]
    assert to_try(own, ["a", "c", "b"], failed={"2", "3", "4"}, order=2) == own[2:]


def test_what_is_barred_is_not_tried_while_another_can_be() -> None:
    own = [deployment("1", "a", 1), deployment("2", "b", 2), deployment("3", "c", 3)]
    assert ids(to_try(own, ["a", "b", "c"], barred={"1"})) == ["2"]
    assert ids(to_try(own, ["a", "b", "c"], failed={"2", "3"}, barred={"1"})) == ["2"]
    assert ids(to_try(own, ["a", "b", "c"], barred={"1", "2", "3"})) == ["1"]


def test_a_fallback_to_an_order_of_barred_ones_tries_none() -> None:
    own = [deployment("1", "a", order=1), deployment("2", "b", order=2)]
    assert to_try(own, ["b", "a"], barred={"1"}, order=1) == []


SOME = st.sets(st.sampled_from(["1", "2", "3", "4"]))


@given(st.permutations(["a", "b", "c"]), SOME, SOME)
def test_only_what_litellm_gave_is_left(ranking: list[str], failed: set[str], no: set[str]) -> None:
    given_ = [*ZOO, REPLICA]
    left = to_try(given_, ranking, failed, no)

    assert left
    assert all(any(each is one for one in given_) for each in left)
    assert len({each["litellm_params"]["model"] for each in left}) == 1
    if len(no) < len(given_):
        assert no.isdisjoint(ids(left))
    if failed | no != {"1", "2", "3", "4"}:
        assert failed.isdisjoint(ids(left))


def test_an_exploration_sees_the_replicas_of_its_candidate_alone() -> None:
    assert only([*ZOO, REPLICA], "a") == [ZOO[0], REPLICA]
    assert only(ZOO, "gone") == []


def test_what_is_pinned_stays_on_its_deployment_while_that_is_there() -> None:
    replicas = [*ZOO, REPLICA]
    assert pinned(replicas, "4") == [replicas[3]]
    assert pinned(replicas, "gone") == pinned(replicas, None) == replicas


def test_an_exploration_passes_a_barred_replica_by() -> None:
    assert only([*ZOO, REPLICA], "a", barred={"1"}) == [REPLICA]
