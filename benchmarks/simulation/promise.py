"""Is a promise over sessions kept? Made-up sessions, decided by the router's own engine.

Some sessions are under way at once, each decided at its first turn and held from there. No one
says a word before a session is over; then its user judges it, once, with the probability that is
assumed. Where the promise counts requests, the verdict is one on the last request; where it counts
conversations, on the conversation.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.simulation.world import Assumed, Session, SimulatedZoo, satisfies, sessions
from litellm_messplus.deciding.decider import Engine
from litellm_messplus.deciding.question import Question
from litellm_messplus.prediction.encoder import Conversation, FeatureRows, Features
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.routing.decision import Decision, Reason
from litellm_messplus.runtime.vocabulary import LabelKind
from litellm_messplus.settings.schema import DEFAULT_LEVEL, ZooSettings
from litellm_messplus.settings.serving import Unit
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.state.credits import shares_of
from litellm_messplus.state.entries import Decided, Example, Labelled, Settled
from litellm_messplus.state.verdict import Given

UNDER_WAY = 20
"""Sessions at once."""
PROMISED = 1_000
"""Sessions of a seed."""
CHARACTERS = 4
"""Of a token."""


class SeenDifficulty:
    """An encoder of what a turn shows of a session's difficulty."""

    name = "simulated-difficulty"
    dimension = 2
    is_fast = True

    def read(self, conversation: Conversation) -> str:
        """Return the text, as any encoder does; nothing here is text."""
        return conversation.text

    def encode(self, texts: Sequence[str]) -> FeatureRows:
        """Encode difficulties that are written as text."""
        return np.array([features_of(float(text)) for text in texts])


def features_of(seen: float) -> Features:
    return np.array([1.0, seen], dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Kept:
    """The outcome of a seed: the share of its sessions that were satisfied, the mean cost of a
    session over that with the last model alone, nothing cached, and how many the promise
    ``counted``: sessions, or their requests."""

    satisfied: float
    cost: float
    counted: int


@dataclass(frozen=True, slots=True)
class Promise:
    """The outcomes of all seeds under a promise of ``alpha``."""

    zoo: SimulatedZoo
    unit: Unit
    alpha: float
    answered: float
    sessions: int
    kept: tuple[Kept, ...]

    @property
    def satisfied(self) -> float:
        """The mean share of satisfied sessions."""
        return float(np.mean([each.satisfied for each in self.kept]))

    @property
    def cost(self) -> float:
        """The mean cost, over that of the last model alone."""
        return float(np.mean([each.cost for each in self.kept]))

    @property
    def counted(self) -> int:
        """Count the requests or conversations that the promise was over."""
        return sum(each.counted for each in self.kept)

    def as_dict(self) -> dict[str, Any]:
        """Convert it for JSON."""
        return {
            "simulation": True,
            "prices": self.zoo.name,
            "unit": self.unit,
            "alpha": self.alpha,
            "answered": self.answered,
            "sessions": self.sessions,
            "seeds": len(self.kept),
            "satisfied": self.satisfied,
            "cost": self.cost,
            "counted": self.counted,
        }


def promise(
    zoo: SimulatedZoo,
    assumed: Assumed,
    seeds: int,
    alpha: float,
    unit: Unit,
    *,
    count: int = PROMISED,
    answered: float = 1.0,
    progress: Callable[[], None] = lambda: None,
) -> Promise:
    """Serve the sessions of every seed; ``answered`` is the share of them that are judged."""
    kept = []
    for seed in range(seeds):
        kept.append(Traffic(zoo, assumed, alpha, unit, answered, seed).serve(count))
        progress()
    return Promise(zoo, unit, alpha, answered, count, tuple(kept))


@dataclass(slots=True)
class _Open:
    """A session on its way: the number of its next turn, and the model that serves it."""

    name: str
    session: Session
    turn: int = 0
    model: str = ""
    aim: float = 0.0
    served: list[str] = field(default_factory=list)


class Traffic:
    """The sessions of one seed, and the engine that decides them."""

    def __init__(
        self,
        zoo: SimulatedZoo,
        assumed: Assumed,
        alpha: float,
        unit: Unit,
        answered: float,
        seed: int,
    ) -> None:
        settings = ZooSettings.model_validate({"alpha": alpha, "conversations": {"unit": unit}})
        prices = {model.name: model.price for model in zoo.models}
        self.engine = Engine(Zoo("simulated", settings, prices), SeenDifficulty(), seed)
        self._models = {model.name: model for model in zoo.models}
        self._assumed = assumed
        self._unit = unit
        self._answered = answered
        self._seed = seed
        self._drawn = np.random.default_rng(seed)
        self._position = 0

    def serve(self, count: int) -> Kept:
        """Serve so many sessions, some of them at once, until all are over."""
        waiting = iter(enumerate(sessions(count, 2 * self._seed, self._assumed)))
        under_way: list[_Open] = []
        satisfied: list[bool] = []
        cost: list[float] = []
        for opened in self._turns(waiting, under_way):
            self._take_turn(opened)
            if opened.turn == len(opened.session):
                under_way.remove(opened)
                satisfied.append(self._end(opened))
                cost.append(self._relative_cost(opened))
        counted = self.engine.state.counted(DEFAULT_LEVEL)
        return Kept(float(np.mean(satisfied)), float(np.mean(cost)), counted)

    def _turns(
        self, waiting: Iterator[tuple[int, Session]], under_way: list[_Open]
    ) -> Iterator[_Open]:
        """Yield the session whose turn is next: any of those that are under way."""
        while True:
            while len(under_way) < UNDER_WAY and (entering := next(waiting, None)) is not None:
                under_way.append(_Open(str(entering[0]), entering[1]))
            if not under_way:
                return
            yield under_way[int(self._drawn.integers(len(under_way)))]

    def _take_turn(self, opened: _Open) -> None:
        """Decide or hold one request, and let it be answered."""
        first, request_id = opened.turn == 0, _request_id(opened.name, opened.turn)
        counted_with = None
        if self._unit is Unit.CONVERSATION and not first:
            counted_with = _request_id(opened.name, 0)
        tokens = self._assumed.prefix_tokens + opened.turn * self._assumed.growth_tokens
        seen = opened.session.seen[opened.turn]
        question = Question(
            request_id,
            self.engine.zoo.levels[DEFAULT_LEVEL],
            Prompt(features_of(seen)),
            CHARACTERS * tokens,
            tuple(self._models),
            counted_with=counted_with,
        )
        choice = self.engine.decide(question) if first else self.engine.hold(question, opened.model)
        opened.model = choice.decision.chosen
        opened.served.append(opened.model)
        if first or self._unit is Unit.REQUEST:
            opened.aim = choice.situation.alpha
        self._log(request_id, choice.decision, choice.situation.alpha, counted_with)
        self._answer(opened, request_id, tokens)
        opened.turn += 1

    def _log(
        self, request_id: str, decision: Decision, aim: float, counted_with: str | None
    ) -> None:
        self.engine.apply(
            Decided(
                position=self._next_position(),
                zoo=self.engine.zoo.name,
                service_level=DEFAULT_LEVEL,
                request_id=request_id,
                expected_shortfall=aim - decision.expected_satisfaction,
                calls=1 + len(decision.explored),
                at=float(self._position),
                counted_with=counted_with,
                is_held=decision.reason is Reason.HELD,
            )
        )

    def _answer(self, opened: _Open, request_id: str, tokens: int) -> None:
        self.engine.apply(
            Settled(
                position=self._next_position(),
                zoo=self.engine.zoo.name,
                call_id=f"{request_id}.0",
                candidate=opened.model,
                prompt_characters=CHARACTERS * tokens,
                prompt_tokens=float(tokens),
                completion_tokens=float(self._assumed.answer_tokens),
                example=self._example(opened, opened.turn),
                given=(),
            )
        )

    def _end(self, opened: _Open) -> bool:
        """Let the user judge the session, if he does; returns whether it satisfied him."""
        chance = satisfies(
            self._models[opened.model], opened.session.difficulty, self._assumed.slope
        )
        is_satisfied = bool(self._drawn.random() < chance)
        if self._drawn.random() < self._answered:
            self._judge(opened, is_satisfied)
        return is_satisfied

    def _judge(self, opened: _Open, is_satisfied: bool) -> None:
        is_whole = self._unit is Unit.CONVERSATION
        judged = 0 if is_whole else opened.turn - 1
        request_id = _request_id(opened.name, judged)
        self.engine.apply(
            Labelled(
                position=self._next_position(),
                zoo=self.engine.zoo.name,
                service_level=DEFAULT_LEVEL,
                request_id=request_id,
                call_id=f"{request_id}.0",
                alpha=opened.aim,
                is_served=True,
                given=Given(LabelKind.FEEDBACK, "simulation", float(is_satisfied)),
                earlier=(),
                example=self._example(opened, judged),
                shares=shares_of(opened.served) if is_whole and opened.turn > 1 else (),
            )
        )

    def _example(self, opened: _Open, turn: int) -> Example:
        return Example(
            _request_id(opened.name, turn),
            self.engine.encoder.name,
            features_of(opened.session.seen[turn]),
            opened.served[turn],
            is_exploration=False,
        )

    def _relative_cost(self, opened: _Open) -> float:
        """Compare what the session cost, nothing cached, with what the last model alone costs."""
        largest = self._models[self.engine.zoo.candidates[-1]]
        prompt, answer = float(self._assumed.prefix_tokens), float(self._assumed.answer_tokens)
        held = self._models[opened.model]
        return held.price.of(prompt, answer) / largest.price.of(prompt, answer)

    def _next_position(self) -> int:
        self._position += 1
        return self._position


def _request_id(session: str, turn: int) -> str:
    return f"{session}-{turn}"
