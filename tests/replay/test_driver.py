"""A run through the engine: what is fed, when, and what is counted."""

import numpy as np
import pytest

from litellm_messplus.core.engine import Question
from litellm_messplus.core.entries import Decided, Labelled, Settled
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.replay.run import Late, Run, build_engine, drawn_labels, prices
from litellm_messplus.settings.schema import ZooSettings
from tests.support.recordings import ENCODER, recording, synthetic
from tests.support.replay_runs import build_run, engine_of, entries_of

POLICIES = ["paper", "adaptive"]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_serves_every_request_and_counts_every_call(policy: str) -> None:
    made = synthetic(300)

    outcome = build_run(made, policy).go()

    requests = np.arange(300)
    assert outcome.calls[requests, outcome.served].all()
    assert outcome.cost == pytest.approx((outcome.calls * made.cost).sum(axis=1))
    assert np.array_equal(outcome.satisfied, made.satisfied[requests, outcome.served])
    if policy == "paper":
        assert outcome.calls[0].all(), "the first request calls every model"
        assert made.models[outcome.served[0]] == made.largest
    else:
        assert outcome.calls[0].sum() == 1, "no label is bought to distinguish models beforehand"
    assert outcome.explorations >= 1
    assert outcome.queue is not None
    assert outcome.queue[0] == 0.0
    assert len(outcome.queue) == 300


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_seed_gives_the_same_run(policy: str) -> None:
    made = synthetic(300)

    first, again = build_run(made, policy, 3).go(), build_run(made, policy, 3).go()
    other = build_run(made, policy, 4).go()

    assert np.array_equal(first.served, again.served)
    assert np.array_equal(first.calls, again.calls)
    assert not np.array_equal(first.calls, other.calls)


def test_a_label_counts_against_what_its_request_aimed_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the log: with a confidence that is more than alpha, and less with every label."""
    made = synthetic(60)
    settings = ZooSettings.model_validate({"alpha": 0.7, "confidence": 0.95})
    run = Run(build_engine(made, settings, ENCODER, 0), made, made.satisfied)
    aims = [entry.alpha for entry in entries_of(run, monkeypatch) if isinstance(entry, Labelled)]

    assert min(aims) > 0.7
    assert max(aims) < 0.85


@pytest.mark.parametrize("policy", POLICIES)
def test_entries_come_as_in_the_log(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fed = entries_of(build_run(synthetic(20), policy), monkeypatch)

    assert [entry.position for entry in fed] == list(range(1, len(fed) + 1))
    assert [entry.request_id for entry in fed if isinstance(entry, Decided)] == [
        str(number) for number in range(20)
    ]
    calls = sum(isinstance(entry, Settled) and entry.call_id.startswith("0.") for entry in fed)
    kinds = [type(entry) for entry in fed[: 1 + 2 * calls]]
    assert kinds == [Decided, *[Settled] * calls, *[Labelled] * calls]
    assert calls == (3 if policy == "paper" else 1)
    served = [entry.call_id for entry in fed if isinstance(entry, Labelled) and entry.is_served]
    assert served == [f"{number}.0" for number in range(19)], "the last label has no one to tell"


def test_costs_are_fed_as_completion_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    made = synthetic(5)

    fed = entries_of(build_run(made), monkeypatch)

    price = {model: price.completion for model, price in prices(made).items()}
    ended = [entry for entry in fed if isinstance(entry, Settled)]
    assert len(ended) >= 5
    for entry in ended:
        request = int(entry.call_id.split(".")[0])
        assert entry.candidate is not None
        assert entry.completion_tokens is not None
        cost = made.cost[request, made.models.index(entry.candidate)]
        assert entry.completion_tokens * price[entry.candidate] == pytest.approx(cost)


def test_before_a_call_a_model_is_expected_to_cost_what_it_did_for_the_first_request() -> None:
    run = build_run(synthetic(5))
    level, prompt = run.engine.zoo.levels["default"], Prompt(None)

    question = Question("0", level, prompt, 9, run.recording.models)
    estimates = run.engine.situation(question).estimates

    costs = [estimate.typical_cost for estimate in estimates]
    assert costs == pytest.approx(run.recording.cost[0].tolist())


def test_a_model_that_costs_nothing_has_a_price_all_the_same() -> None:
    free = recording(np.ones((3, 2)), np.tile([0.0, 5.0], (3, 1)))

    assert all(price.completion > 0.0 for price in prices(free).values())


def test_costs_are_expected_in_the_unit_of_the_recording() -> None:
    made = recording(np.ones((50, 2)), np.tile([1e-6, 5e-5], (50, 1)))
    run = build_run(made)
    run.go()

    first = Prompt(made.prompts.features[0], made.prompts.surfaces[0])
    situation = run.engine.situation(
        Question("50", run.engine.zoo.levels["default"], first, 9, made.models)
    )

    assert [estimate.cost for estimate in situation.estimates] == pytest.approx([1e-6, 5e-5])


def test_labels_arrive_late(monkeypatch: pytest.MonkeyPatch) -> None:
    fed = entries_of(build_run(synthetic(30), delay=5), monkeypatch)

    decided = 0
    for entry in fed:
        if isinstance(entry, Decided):
            decided += 1
        elif isinstance(entry, Labelled):
            assert decided == int(entry.request_id) + 1 + 5


def test_unanswered_requests_are_never_labelled(monkeypatch: pytest.MonkeyPatch) -> None:
    fed = entries_of(build_run(synthetic(30), feedback=0.0), monkeypatch)

    assert not any(isinstance(entry, Labelled) for entry in fed)


def test_given_labels_are_fed_and_the_truth_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    made = recording(np.ones((40, 2)), np.ones((40, 2)))
    run = Run(engine_of(made, "paper", 0), made, 1.0 - made.satisfied)

    fed = entries_of(run, monkeypatch)

    assert {entry.given.value for entry in fed if isinstance(entry, Labelled)} == {0.0}
    assert Run(engine_of(made, "paper", 0), made, 1.0 - made.satisfied).go().satisfied.all()


def test_feedback_is_the_share_that_answers() -> None:
    made = synthetic(20_000)
    plain, again, other = (
        drawn_labels(made.satisfied, 0.2, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )

    given = ~np.isnan(plain)
    assert given.mean() == pytest.approx(0.2, abs=0.01)
    assert given[made.satisfied == 1.0].mean() == pytest.approx(0.2, abs=0.01)
    assert np.array_equal(plain[given], made.satisfied[given])
    assert np.array_equal(plain, again, equal_nan=True)
    assert not np.array_equal(plain, other, equal_nan=True)


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_a_late_label_is_there_so_many_requests_later(delay: int) -> None:
    late: Late[int] = Late(delay)
    arrivals = {}
    for request in range(10):
        arrivals[request] = list(late.due(request))
        late.add(request, request)

    assert arrivals == {
        request: [request - 1 - delay] if request > delay else [] for request in range(10)
    }


def test_the_paper_policy_pays_its_debt() -> None:
    """With V = 1e-4 and costs of about 1, cost hardly counts, and surplus is thrown away."""
    outcome = build_run(synthetic(2000), "paper").go()

    assert outcome.satisfied.mean() > 0.69


def test_the_adaptive_policy_holds_alpha_below_the_cost_of_the_largest() -> None:
    made = synthetic(2000)

    outcome = build_run(made, "adaptive").go()

    assert outcome.satisfied.mean() == pytest.approx(0.7, abs=0.02)
    assert outcome.cost.sum() < 0.5 * made.cost[:, 2].sum()
