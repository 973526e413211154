"""A log of decisions by several workers: each decides from as much of the log as it has read, and
what it writes comes a little later. All ways to decide occur."""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.conversations.caches import Ahead
from litellm_messplus.conversations.rule import CountedAs
from litellm_messplus.costs.price import Price
from litellm_messplus.deciding.decider import Engine, fold
from litellm_messplus.deciding.question import Choice, Question, logged_limits
from litellm_messplus.prediction.encoder import Conversation
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.prediction.surface import VERSION, read_surface
from litellm_messplus.records import Asker, CandidateRecord, Record, RequestRecord
from litellm_messplus.routing.held import Gated
from litellm_messplus.runtime.vocabulary import CallStatus, Change, level_before
from litellm_messplus.settings.promise import SecondAnswer
from litellm_messplus.state.catalog import plain_price
from litellm_messplus.state.entries import Decided
from litellm_messplus.state.published import Publication, View, view_of
from litellm_messplus.store import log
from litellm_messplus.store.entries import read_entries
from litellm_messplus.switching.modes import Arm, Trial
from litellm_messplus.upkeep.decisions import Decisions
from litellm_messplus.upkeep.folding import Fold
from tests.support.builders import (
    LARGE,
    NOW,
    SMALL,
    build_engine,
    build_zoo,
    exploration_call,
    label,
    looks,
    pair,
    replaced_call,
    served_call,
)

TOKENS = 100
MANAGES = {SMALL: 0.1, "medium": 0.5, LARGE: 1.0, "newest": 0.8}
"""How hard a prompt may be, from -1 to 1, for each to satisfy nearly always; else nearly never."""
NEWEST = CandidateRecord(
    "newest-1", "zoo", "newest", NOW, Change.APPEARED, plain_price(Price(0.0, 0.02)), 1
)
WAYS = (
    *("plain", "plain", "plain", "plain", "forced", "gated", "alone", "held", "trouble", "before"),
    *("bought", "unlabelled", "turn", "measured", "unread", "cached"),
)
GOLD: dict[str, Any] = {"service_levels": {"gold": {"alpha": 0.85}}}
LIMITS: dict[str, Any] = {"p95_seconds": 1.0, "budget_per_day": 2500.0}
TURNS_OF = {"conversations": {"unit": "conversation"}}
"""The settings of a zoo whose promise counts conversations."""


@dataclass
class Worker:
    """A worker: its engine, which has read the log up to ``position``."""

    engine: Engine
    position: int = 0

    async def follow(self, database: AsyncEngine, upto: int) -> None:
        """Fold in what all have written up to there."""
        async for entry in read_entries(database, self.position, upto):
            assert fold({"zoo": self.engine}, entry)
        self.position = max(self.position, upto)


@dataclass
class Reader(Worker):
    """A worker that decides from what a learner publishes of its state."""

    learner: Engine = field(default_factory=build_engine)
    workers: int = 1

    async def follow(self, database: AsyncEngine, upto: int) -> None:
        """See the state of the log up to there."""
        async for entry in read_entries(database, self.position, upto):
            assert fold({"zoo": self.learner}, entry)
            if isinstance(entry, Decided):
                self.engine.forget(entry.request_id)
        view = View("settings", *view_of(self.learner.state))
        told = Publication.unpack(Publication(upto, 1, self.workers, {}, {"zoo": view}).pack())
        self.engine.see(told.views["zoo"], told.position, told.workers)
        self.position = upto


@dataclass
class Script:
    """Requests in turn, by the roll of a die: which way each is decided, and what comes of it."""

    seed: int
    random: Random = field(init=False)
    firsts: list[str] = field(default_factory=list)
    ways: set[str] = field(default_factory=set)
    replaced: int = 0
    """How many answers were replaced by a second one."""

    def __post_init__(self) -> None:
        self.random = Random(f"decided {self.seed}")

    def request(self, engine: Engine, number: int) -> tuple[Question, str]:
        """Ask a question, to be decided in some way."""
        random, way = self.random, self.random.choice(WAYS)
        level = engine.zoo.levels[random.choice(("default", "default", "gold"))]
        hard = random.uniform(-1, 1)
        text = " + ".join(["17"] * random.randint(1, 40))
        there = engine.zoo.present
        chances = {"forced": (LARGE,), "gated": tuple(name for name in there if name != SMALL)}
        counts = engine.zoo.settings.counts_conversations
        counted_with = None
        if way == "turn" and counts and self.firsts:
            counted_with = random.choice(self.firsts)
        question = Question(
            f"r{number:05d}",
            level.model_copy(update={"name": level_before(level.name)})
            if way == "before"
            else level,
            Prompt(
                None if way == "unread" else pair(hard, random.uniform(-1, 1)),
                read_surface(Conversation.of_text(text)),
            ),
            len(text),
            chances.get(way, there),
            most_completion_tokens=random.choice((float("inf"), 60.0)),
            prompt_tokens={name: float(random.randint(5, 50)) for name in there}
            if way == "cached"
            else {},
            is_gated=way in chances,
            ahead={LARGE: Ahead(40.0)} if way == "cached" else {},
            counted_with=counted_with,
            at=NOW.timestamp() + 30.0 * number,
            is_alone=way == "alone",
            may_go_on=way == "plain" and engine.zoo.settings.second_answer is SecondAnswer.AUTO,
        )
        if counted_with is None and way != "before":
            self.firsts = [*self.firsts[-20:], question.request_id]
        if way == "measured":
            engine.price_factors = {SMALL: round(random.uniform(0.5, 2.0), 2)}
            engine.usual_parts = {LARGE: round(random.uniform(0.3, 1.0), 2)}
        self.ways.add(way)
        return question, way

    def choose(self, engine: Engine, question: Question, way: str) -> Choice:
        """Decide it that way."""
        stays = self.random.choice(question.candidates)
        if way == "trouble":
            better = engine.go_up(question, stays)
            if better is not None:
                return better
        if way in ("held", "trouble"):
            return engine.hold(question, stays)
        known = {"bought": True, "unlabelled": False}
        return engine.decide(question, lambda _: known.get(way))

    def outcome(
        self, record: RequestRecord, choice: Choice, hard: float, second: str | None = None
    ) -> Iterator[Record]:
        """Yield what is written of it later: its calls, and labels of most of them; the answer of
        the chosen one is replaced if there is a ``second``."""
        random = self.random
        names = (second or record.chosen, *choice.decision.explored)
        if second is not None:
            self.replaced += 1
            first = {"candidate": record.chosen, **looks(answer_of(record.chosen, hard))}
            yield replaced_call(record.request_id, **first)
        for place, name in enumerate(names):
            failed = random.random() < 0.03
            made = {
                "candidate": name,
                "completion_tokens": random.randint(20, 300),
                "seconds": random.uniform(0.1, 0.7 if name != LARGE else 2.5),
                "cost": random.uniform(0.5, 5.0),
                "status": CallStatus.FAILURE if failed else CallStatus.SUCCESS,
                **looks(answer_of(name, hard)),
            }
            if place == 0:
                yield served_call(record.request_id, **made)
            else:
                yield exploration_call(record.request_id, place, **made)
            if not failed and random.random() < 0.8:
                value = float(random.random() < (0.97 if hard < MANAGES[name] else 0.03))
                yield label(record.request_id, value, place)
                if random.random() < 0.1:
                    again = f"again-{record.request_id}-{place}"
                    yield label(record.request_id, 1.0 - value, place, label_id=again)


def answer_of(name: str, hard: float) -> str:
    """An answer that hedges where it nearly never satisfies."""
    return "It is 34." if hard < MANAGES[name] else "Sorry, however, maybe it is 34."


def second_of(engine: Engine, question: Question, choice: Choice, hard: float) -> str | None:
    """The candidate whose answer is given in place of the chosen one's; None if that is kept."""
    if not choice.decision.reads or choice.decision.explored:
        return None
    answer = looks(answer_of(choice.decision.chosen, hard))["answer_surface"]
    return engine.reads(question, choice, answer).goes_on_to


def record_of(engine: Engine, question: Question, choice: Choice, way: str) -> RequestRecord:
    """The row of a decision, as the plugin writes it."""
    situation, decision = choice.situation, choice.decision
    is_before = way == "before"
    trial = Trial(Arm.BEFORE, would_choose=decision.chosen) if is_before else Trial(Arm.ROUTED)
    return RequestRecord(
        request_id=question.request_id,
        created_at=datetime.fromtimestamp(question.at, UTC),
        zoo=engine.zoo.name,
        service_level=question.level.name,
        expected_t=situation.t,
        alpha=question.level.alpha,
        policy=engine.zoo.settings.policy,
        asker=Asker(f"litellm-{question.request_id}", "key", None, "acompletion", False),
        encoder=engine.encoder.name,
        features=question.prompt.features,
        prompt_characters=question.prompt_characters,
        estimated_cost={each.candidate: each.cost for each in situation.everyone},
        estimated_satisfaction={each.candidate: each.satisfaction for each in situation.everyone},
        queue=situation.queue,
        chosen=LARGE if is_before else decision.chosen,
        largest=engine.zoo.largest,
        is_exploration=decision.is_exploration,
        exploration_probability=decision.exploration_probability,
        reason=decision.reason,
        aim=situation.alpha,
        expected_satisfaction=decision.expected_satisfaction,
        price=decision.price,
        propensity=decision.propensity,
        exploration_calls=len(decision.explored),
        surface=question.prompt.surface,
        surface_version=VERSION,
        is_within_reach=decision.is_within_reach,
        label_probability=0.5 if way == "bought" else None,
        gated=Gated(question.candidates, ("images",)) if question.is_gated else None,
        trial=trial,
        limits=logged_limits(choice),
        counted=None if question.counted_with is None else CountedAs(question.counted_with),
        as_of=choice.as_of,
        in_flight=situation.in_flight,
        inputs=choice.inputs,
    )


async def play(
    script: Script, workers: Sequence[Worker], database: AsyncEngine, requests: int
) -> AsyncIterator[RequestRecord]:
    """Play so many requests, written by batches of each worker, and yield each row."""
    random, waiting = script.random, {id(worker): list[Record]() for worker in workers}
    for number in range(1, requests + 1):
        if number == requests // 2:
            await log.append(database, [NEWEST])
        worker = random.choice(workers)
        if random.random() < 0.6:
            await worker.follow(database, await log.head(database))
        question, way = script.request(worker.engine, number)
        choice = script.choose(worker.engine, question, way)
        record = record_of(worker.engine, question, choice, way)
        yield record
        hard = 0.0 if record.features is None else float(record.features[0])
        written = waiting[id(worker)]
        second = second_of(worker.engine, question, choice, hard)
        written += [record, *script.outcome(record, choice, hard, second)]
        if random.random() < 0.3:
            await log.append(database, written)
            written.clear()
    for written in waiting.values():
        if written:
            await log.append(database, written)


async def computed(database: AsyncEngine, settings: dict[str, Any], **changed: Any) -> Decisions:
    """What comes out of computing all decisions again, with a zoo of these settings."""
    zoo = build_zoo(**{**settings, **changed}, **GOLD)
    head = await log.head(database)
    found = Decisions(database, fold := Fold(database, {"zoo": build_engine(zoo, seed=5)}), head)
    await fold.begin()
    await found.to(head)
    assert fold.failed == 0
    return found
