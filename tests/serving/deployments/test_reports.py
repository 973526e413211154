"""What a worker reports of the models that its router shows, and what it leaves to others."""

from litellm_messplus.brain.live_catalog import LASTING_SECONDS, Reports
from litellm_messplus.core.engine import Engine
from litellm_messplus.costs.price import Price
from litellm_messplus.runtime.vocabulary import Change
from litellm_messplus.serving.deployments.index import DeploymentIndex
from tests.support.builders import MEDIUM, PRICES, SMALL, build_engine, build_zoo, changed
from tests.support.journey import live as deployment


def due(reports: Reports, engine: Engine, now: float) -> dict[str, Change]:
    return reports.due(engine.zoo, engine.state.catalog, engine.logged_prices, now)


def test_nothing_is_reported_before_the_router_was_seen() -> None:
    assert due(Reports(), build_engine(), LASTING_SECONDS) == {}


def test_what_changed_in_the_own_router_is_reported_until_the_log_agrees() -> None:
    reports, engine = Reports(), build_engine()
    reports.saw(PRICES)
    assert due(reports, engine, 0.0) == {}

    reports.saw({**PRICES, SMALL: Price(0.0, 0.5), "new": Price(0.0, 0.002)})
    expected = {SMALL: Change.PRICED, "new": Change.APPEARED}
    assert due(reports, engine, 1.0) == due(reports, engine, 2.0) == expected

    engine.apply(changed(SMALL, Change.PRICED, price=0.5))
    engine.apply(changed("new"))
    assert due(reports, engine, 3.0) == {}


def test_a_change_that_another_worker_saw_first_is_not_taken_back() -> None:
    reports, engine = Reports(), build_engine()
    reports.saw(PRICES)
    due(reports, engine, 0.0)
    engine.apply(changed("new"))
    engine.apply(changed(MEDIUM, Change.GONE))
    engine.apply(changed(SMALL, Change.PRICED, price=0.5))
    assert due(reports, engine, 1.0) == {}


def test_what_the_router_shows_all_the_time_is_there_again() -> None:
    reports, engine = Reports(), build_engine()
    reports.saw(PRICES)
    due(reports, engine, 0.0)
    engine.apply(changed(MEDIUM, Change.GONE))
    due(reports, engine, 1.0)
    assert due(reports, engine, LASTING_SECONDS) == {}
    assert due(reports, engine, LASTING_SECONDS + 1.0) == {MEDIUM: Change.APPEARED}


def test_what_the_router_never_showed_is_gone_which_is_said_once() -> None:
    reports, engine = Reports(), build_engine()
    engine.apply(changed("elsewhere"))
    reports.saw(PRICES)
    assert due(reports, engine, 0.0) == {}
    assert due(reports, engine, LASTING_SECONDS) == {"elsewhere": Change.GONE}
    engine.apply(changed("elsewhere", Change.GONE))
    due(reports, engine, LASTING_SECONDS)
    # Two proxies of different configurations would take turns for ever.
    engine.apply(changed("elsewhere"))
    due(reports, engine, LASTING_SECONDS)
    for now in (2.0, 3.0):
        assert due(reports, engine, now * LASTING_SECONDS) == {}


def test_a_candidate_that_there_is_no_room_for_is_not_reported_again() -> None:
    reports, engine = Reports(), build_engine()
    engine.state.catalog.left_out.append("new")
    reports.saw({**PRICES, "new": Price(0.0, 0.002)})
    assert due(reports, engine, LASTING_SECONDS) == {}


def test_the_index_remembers_a_bounded_number_of_deployments_that_are_gone() -> None:
    index, settings = DeploymentIndex(remembered=3), build_zoo().settings
    for number in range(20):
        found = deployment(f"m{number}", 1e-6)
        index.see("zoo", [found], settings)
        index.gone("zoo", {f"m{number}"})
    assert list(index.candidates_of["zoo"]) == ["m17", "m18", "m19"]
    assert len(index.prices) == 3
    assert dict(index.replicas) == {("zoo", "openai/m19"): ["m19"]}
