"""Energy in service: what is measured goes to the log, and prices follow it."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.deciding.question import Question
from litellm_messplus.energy.follow import Call, MeasuredCall
from litellm_messplus.energy.measure import Idle
from litellm_messplus.energy.meter import Meter
from litellm_messplus.journal import Journal
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.records import CallRecord, EnergyRecord, Record
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.vocabulary import CallStatus
from litellm_messplus.serving import energy_service
from litellm_messplus.serving.deployments.index import DeploymentIndex
from litellm_messplus.serving.deployments.prices import measured_deployment
from litellm_messplus.serving.energy_service import OTHERS, EnergyService, OtherWorkers
from litellm_messplus.store import log
from tests.support.builders import LARGE, SMALL, build_engine, build_zoo, served_call
from tests.support.profiles import COMPLETION, PROMPT, REQUEST, write_profile

ESTIMATED = REQUEST + 10 * PROMPT + 5 * COMPLETION
ELECTRICITY = {"price_per_kwh": 0.36}
DOLLARS_PER_JOULE = 0.36 / 3_600_000


class FakeFollower:
    """A follower in name: nothing is measured but what a test says."""

    made: list["FakeFollower"]

    def __init__(
        self,
        meter: Meter,
        idle: Idle,
        *,
        measured: Callable[[MeasuredCall], None],
        counters: Counters,
    ) -> None:
        self.meter, self.idle, self.measured = meter, idle, measured
        self.calls: list[Call] = []
        self.corrections: dict[str, float] = {}
        self.is_running = False
        self.made.append(self)

    async def run(self) -> None:
        self.is_running = True
        try:
            await asyncio.Event().wait()
        finally:
            self.is_running = False

    def ended(self, call: Call) -> None:
        self.calls.append(call)

    def correction(self, deployment_id: str) -> float:
        return self.corrections.get(deployment_id, 1.0)


@pytest.fixture(autouse=True)
def followers(monkeypatch: pytest.MonkeyPatch) -> list[FakeFollower]:
    FakeFollower.made = []
    monkeypatch.setattr(energy_service, "EnergyFollower", FakeFollower)
    return FakeFollower.made


class Log(list[Record]):
    def write(self, record: Record) -> None:
        self.append(record)


class Service:
    """Deployments `a` and `b` of SMALL share a GPU, `c` of LARGE has another; `d` has none."""

    def __init__(self, folder: Path, database: AsyncEngine | None = None, **zoo: Any) -> None:
        zoo = zoo or {"cost_unit": "joule"}
        profile = write_profile(folder / "mine.yaml", sensors=("gpu 0",))
        shared = {"energy_profile": profile, "zeusd": "gpu-1", "gpus": [0]}
        self.deployments = [
            _deployment("a", SMALL, **shared),
            _deployment("b", SMALL, **shared),
            _deployment("c", LARGE, **{**shared, "gpus": [1]}),
            _deployment("d", LARGE, joules_per_prompt_token=1.0),
        ]
        self.engine = build_engine(build_zoo(**zoo))
        self.index = DeploymentIndex()
        self.index.see("zoo", self.deployments, self.engine.zoo.settings)
        self.log, self.counters = Log(), Counters()
        found = [measured_deployment(each) for each in self.deployments]
        self.service = EnergyService(
            [each for each in found if each is not None],
            self.index,
            {"zoo": self.engine},
            cast(Journal, self.log),
            OtherWorkers(cast(AsyncEngine, database), 0),
            self.counters,
        )


def _deployment(identity: str, candidate: str, **messplus: Any) -> dict[str, Any]:
    return {
        "model_name": "zoo",
        "litellm_params": {"model": "hosted_vllm/mine"},
        "model_info": {"id": identity, "messplus": {"candidate": candidate, **messplus}},
    }


def ended(deployment: str | None = "a", candidate: str = SMALL, **changed: Any) -> CallRecord:
    known = {"prompt_tokens": 10, "completion_tokens": 5, "seconds": 2.0, **changed}
    return served_call(deployment_id=deployment, candidate=candidate, **known)


async def test_deployments_on_the_same_sensors_share_one_follower(
    tmp_path: Path, followers: list[FakeFollower]
) -> None:
    told = Service(tmp_path)
    told.service.start()
    for deployment in ("a", "b", "c"):
        told.service.ended("zoo", ended(deployment))
    await asyncio.sleep(0)

    assert [[each.deployment_id for each in follower.calls] for follower in followers] == [
        ["a", "b"],
        ["c"],
    ]
    assert all(follower.is_running for follower in followers)
    assert {follower.idle for follower in followers} == {Idle(50.0, 1.0)}
    await told.service.close()
    assert not any(follower.is_running for follower in followers)


async def test_a_call_is_told_with_its_times_and_the_profiles_own_estimate(
    tmp_path: Path, followers: list[FakeFollower]
) -> None:
    told = Service(tmp_path)
    told.service.start()
    followers[0].corrections["a"] = 2.0
    record = ended()

    told.service.ended("zoo", record)

    end = record.ended_at.timestamp()
    assert followers[0].calls == [Call(record.call_id, "a", end - 2.0, end, ESTIMATED)]
    await told.service.close()


@pytest.mark.parametrize(
    ("record", "counted"),
    [
        (ended("d"), 0),
        (ended(None), 0),
        (ended("unknown"), 0),
        (ended(is_cache_hit=True), 0),
        (ended(prompt_tokens=None), 1),
        (ended(seconds=None), 1),
    ],
    ids=["no daemon", "failed", "unknown", "from the cache", "no tokens", "no time"],
)
async def test_calls_without_energy_or_estimate_take_no_part(
    tmp_path: Path, followers: list[FakeFollower], record: CallRecord, counted: int
) -> None:
    told = Service(tmp_path)
    told.service.start()

    told.service.ended("zoo", record)

    assert [follower.calls for follower in followers] == [[], []]
    assert told.counters.as_dict().get("energy_calls_not_measured", 0) == counted
    await told.service.close()


@pytest.mark.parametrize(
    ("zoo", "per_joule"),
    [
        ({"cost_unit": "joule"}, 1.0),
        ({"cost_unit": "usd", "electricity": ELECTRICITY}, DOLLARS_PER_JOULE),
        ({"cost_unit": "usd"}, None),
    ],
    ids=str,
)
async def test_measured_joules_are_logged_at_what_they_cost_in_the_zoos_unit(
    tmp_path: Path, followers: list[FakeFollower], zoo: dict[str, Any], per_joule: float | None
) -> None:
    told = Service(tmp_path, **zoo)
    told.service.start()

    followers[0].measured(MeasuredCall("r.1", "a", 300.0))

    (record,) = told.log
    assert isinstance(record, EnergyRecord)
    assert (record.call_id, record.request_id, record.joules) == ("r.1", "r", 300.0)
    assert record.cost == (None if per_joule is None else pytest.approx(300.0 * per_joule))
    await told.service.close()


async def test_prices_follow_and_a_candidates_is_the_mean_over_its_deployments(
    tmp_path: Path, followers: list[FakeFollower]
) -> None:
    told = Service(tmp_path)
    level = told.engine.zoo.levels["default"]
    question = Question("r1", level, Prompt(None), 40, told.engine.zoo.candidates)
    before = told.engine.situation(question).estimates
    told.service.start()
    followers[0].corrections = {"a": 2.0, "b": 1.5}
    followers[1].corrections = {"c": 3.0}

    told.service.ended("zoo", ended("a"))
    told.service.ended("zoo", ended("c", LARGE))

    assert told.engine.price_factors == {SMALL: 1.75, LARGE: 2.0}  # `d` is not measured
    after = told.engine.situation(question).estimates
    factors = [new.cost / old.cost for new, old in zip(after, before, strict=True)]
    assert factors == pytest.approx([1.75, 1.0, 2.0])
    assert [each.satisfaction for each in after] == [each.satisfaction for each in before]
    assert [told.service.price_factor(name) for name in "abcd?"] == [2.0, 1.5, 3.0, 1.0, 1.0]
    await told.service.close()


async def test_a_price_in_dollars_does_not_follow_energy(
    tmp_path: Path, followers: list[FakeFollower]
) -> None:
    told = Service(tmp_path, cost_unit="usd")
    told.service.start()
    followers[0].corrections = {"a": 2.0}

    told.service.ended("zoo", ended("a"))

    assert told.service.price_factor("a") == 1.0
    assert told.engine.price_factors == {SMALL: 1.0}
    await told.service.close()


async def test_a_deployment_that_comes_later_is_followed_from_its_first_call(
    tmp_path: Path, followers: list[FakeFollower]
) -> None:
    told = Service(tmp_path)
    told.service.start()
    profile = str(tmp_path / "mine.yaml")
    later = _deployment("e", SMALL, energy_profile=profile, zeusd="gpu-2", gpus=[0])
    told.index.see("zoo", [later], told.engine.zoo.settings)

    told.service.ended("zoo", ended("e"))

    assert [each.deployment_id for each in followers[2].calls] == ["e"]
    assert followers[2].meter.source == "zeusd at gpu-2:4938"
    await told.service.close()


async def test_calls_of_other_workers_take_their_share_and_are_theirs_to_log(
    tmp_path: Path, followers: list[FakeFollower], database: AsyncEngine
) -> None:
    """Each worker reads the whole GPU, whoever's calls it works for."""
    told = Service(tmp_path, database)
    told.service.start()
    own, others = ended(), ended("b", call_id="r2.0", request_id="r2")
    failed = ended("b", call_id="r3.0", request_id="r3", status=CallStatus.FAILURE)
    told.service.ended("zoo", own)
    await log.append(database, [own, others, failed, ended("d", call_id="r4.0")])

    await told.service.hear_of_others()
    await told.service.hear_of_others()

    end = others.ended_at.timestamp()
    assert followers[0].calls[1:] == [Call(OTHERS, "b", end - 2.0, end, ESTIMATED)]
    followers[0].measured(MeasuredCall(OTHERS, "b", 300.0))
    assert told.log == []
    await told.service.close()


async def test_a_fallback_from_another_zoo_takes_its_share_and_is_not_logged_in_this_ones_unit(
    tmp_path: Path, followers: list[FakeFollower]
) -> None:
    told = Service(tmp_path)
    told.service.start()
    fallback = replace(ended("a"), candidate=None)

    told.service.ended("elsewhere", fallback)

    end = fallback.ended_at.timestamp()
    assert followers[0].calls == [Call(OTHERS, "a", end - 2.0, end, ESTIMATED)]
    assert told.engine.price_factors == {}
    await told.service.close()


async def test_a_log_that_does_not_answer_is_counted(
    tmp_path: Path, followers: list[FakeFollower], database: AsyncEngine
) -> None:
    told = Service(tmp_path, database)
    told.service.start()
    async with database.begin() as connection:
        await connection.execute(text("ALTER TABLE calls RENAME TO gone"))

    await told.service.hear_of_others()

    assert told.counters.as_dict() == {"energy_others_unknown": 1}
    await told.service.close()
