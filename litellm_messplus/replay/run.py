"""One run: a recording, fed to the serving engine entry by entry as from a log."""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Generic, TypeVar

import numpy as np

from litellm_messplus.core.answer import ANSWER_NUMBERS, OWN_SCORE
from litellm_messplus.core.answer_heads import Turn
from litellm_messplus.core.decision import label_weight
from litellm_messplus.core.encoder import Encoder
from litellm_messplus.core.engine import Choice, Engine, Question
from litellm_messplus.core.engine import Labelled as Labelling
from litellm_messplus.core.entries import Decided, Example, Labelled, Settled
from litellm_messplus.core.predictor import Before
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.verdict import Given
from litellm_messplus.costs.price import Price
from litellm_messplus.costs.usage import COMPLETION_TOKENS
from litellm_messplus.replay.recording import AnswerRows, Matrix, Recording
from litellm_messplus.replay.summary import Outcome
from litellm_messplus.runtime.vocabulary import LabelKind
from litellm_messplus.settings.promise import ServiceLevel
from litellm_messplus.settings.schema import DEFAULT_LEVEL, ZooSettings
from litellm_messplus.settings.zoo import Zoo

ZOO = "replay"

# The labels of a run.

Item = TypeVar("Item")


def drawn_labels(satisfied: Matrix, feedback: float, generator: np.random.Generator) -> Matrix:
    """Draw the label of every possible call: NaN where it gets none, which gets one with
    probability ``feedback``."""
    return np.where(generator.random(satisfied.shape) < feedback, satisfied, np.nan)


def simulated_checker(satisfied: Matrix, area: float, seed: int) -> AnswerRows:
    """Draw the scores of a checker whose area under the curve is ``area`` on every model, of shape
    (requests, models, numbers): normal, and higher for an answer that satisfies."""
    distance = math.sqrt(2.0) * NormalDist().inv_cdf(area)
    noise = np.random.default_rng([seed, 3]).standard_normal(satisfied.shape)
    found = np.zeros((*satisfied.shape, len(ANSWER_NUMBERS)), np.float32)
    found[..., ANSWER_NUMBERS.index(OWN_SCORE)] = distance * satisfied + noise
    return found


class Late(Generic[Item]):
    """Labels on their way: that of request i arrives before request i + 1 + delay is decided."""

    def __init__(self, delay: int) -> None:
        self._delay = delay
        self._waiting: deque[tuple[int, Item]] = deque()

    def add(self, request: int, item: Item) -> None:
        self._waiting.append((request + 1 + self._delay, item))

    def due(self, request: int) -> Iterator[Item]:
        """Yield what has arrived before ``request`` is decided, in the order in which it was
        added."""
        while self._waiting and self._waiting[0][0] <= request:
            yield self._waiting.popleft()[1]


# The run.


def build_engine(
    recording: Recording, settings: ZooSettings, encoder: Encoder, seed: int, zoo: str = ZOO
) -> Engine:
    """Build an engine without any knowledge, for the models of a recording; ``largest`` is set
    here.

    The engine's draws depend on the zoo's name and the requests' ids, which are their numbers here:
    to repeat a live zoo's draws, a replay needs both.
    """
    named = settings.model_copy(update={"largest": recording.largest})
    return Engine(Zoo(zoo, named, prices(recording)), encoder, seed)


def prices(recording: Recording) -> dict[str, Price]:
    """Set prices of a completion token, by model, at which a model that has not been called yet is
    expected to cost what it did for the recording's first request. The completion tokens of a call
    are its recorded cost over that price, so that costs are in the recording's own unit."""
    return {
        model: Price(completion=cost / COMPLETION_TOKENS if cost > 0.0 else 1.0)
        for model, cost in zip(recording.models, recording.first_costs.tolist(), strict=True)
    }


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict on its way, on a call of a request of that service ``level``. ``of_choice`` and
    ``probability`` are as logged for a request that was served as before."""

    request: int
    model: int
    call_id: str
    is_served: bool
    example: Example
    level: str = DEFAULT_LEVEL
    of_choice: bool | None = None
    probability: float | None = None


class Run:
    """One pass of one engine over one recording, in the recording's order. ``labels`` holds that of
    every possible call, of shape (requests, models); NaN if it gets none."""

    def __init__(
        self, engine: Engine, recording: Recording, labels: Matrix, delay: int = 0
    ) -> None:
        self.engine = engine
        self.recording = recording
        self.level = engine.zoo.levels[DEFAULT_LEVEL]
        self._response_bias = engine.zoo.settings.response_bias
        self.place = {name: place for place, name in enumerate(recording.models)}
        self._read = [*map(Prompt, recording.prompts.features, recording.prompts.surfaces)]
        self._price = [engine.zoo.prices[model].completion for model in recording.models]
        self._prompt: list[int] = recording.prompt.tolist()
        self._cost: list[list[float]] = recording.cost.tolist()
        self._label: list[list[float]] = labels.tolist()
        self._late: Late[Verdict] = Late(delay)
        self._position = 0
        self._served = np.zeros(len(recording), dtype=np.intp)
        self._first = self._served.copy()
        self._calls = np.zeros(recording.cost.shape, dtype=np.bool_)
        self._queue = np.zeros(len(recording))
        self._aim = np.zeros(len(recording))
        self._served_labels = np.full(len(recording), np.nan)
        self._expected = self._served_labels.copy()

    def go(self) -> Outcome:
        """Serve every request once; labels that have not arrived at the end are lost."""
        requests = len(self.recording)
        explorations = sum(self._serve(request) for request in range(requests))
        for label in self._late.due(requests):  # in the log, though too late for any decision
            self._note(label)
        return Outcome.of(
            self._served,
            self._calls,
            self.recording.satisfied,
            self.recording.cost,
            explorations=explorations,
            first=self._first,
            queue=self._queue,
            labels=self._served_labels,
            expected=self._expected,
        )

    def _serve(self, request: int) -> bool:
        """Fold in what has arrived, decide, and call; True for an exploration."""
        self._fold_in(request)
        choice = self._decide(request, self.level)
        decision = choice.decision
        self._note_decided(request, self.level.name, choice, 1 + len(decision.explored))
        called = [self.place[name] for name in (decision.chosen, *decision.explored)]
        second = self._second(request, choice)
        for verdict in self._settle(request, called, second, decision.is_exploration):
            self._late.add(request, verdict)
        return decision.is_exploration

    def _second(self, request: int, choice: Choice) -> int | None:
        """Read the answer, and return the model that answers instead; None if it is kept."""
        if self.recording.answers is None:
            return None
        first = self.place[choice.decision.chosen]
        question = self._question(request, self.level)
        reading = self.engine.reads(question, choice, self.recording.answers[request, first])
        if reading.goes_on_to is None:
            self._expected[request] = reading.answer
            return None
        self._expected[request] = np.nan  # of the first answer, not of the one that is given
        return self.place[reading.goes_on_to]

    def _fold_in(self, request: int) -> None:
        """Fold in what has arrived before a request is decided."""
        for verdict in self._late.due(request):
            self._judge(verdict)

    def _question(self, request: int, level: ServiceLevel) -> Question:
        prompt = self._prompt[request]
        return Question(
            str(request),
            level,
            self._read[prompt],
            len(self.recording.prompts.texts[prompt]),
            self.recording.models,
            may_go_on=self.recording.answers is not None,
        )

    def _decide(
        self, request: int, level: ServiceLevel, labelled: Labelling | None = None
    ) -> Choice:
        choice = self.engine.decide(self._question(request, level), labelled)
        self._queue[request] = choice.situation.queue
        self._aim[request] = choice.situation.alpha
        self._expected[request] = choice.decision.expected_satisfaction
        return choice

    def _note_decided(self, request: int, level: str, choice: Choice, calls: int) -> None:
        """Fold in a decision; a recording has no times, so requests are a second apart."""
        self.engine.apply(
            Decided(
                position=self._next_position(),
                zoo=self.engine.zoo.name,
                service_level=level,
                request_id=str(request),
                expected_shortfall=choice.situation.alpha - choice.decision.expected_satisfaction,
                calls=calls,
                at=float(request),
            )
        )

    def _settle(
        self,
        request: int,
        called: Sequence[int],
        second: int | None = None,
        is_exploration: bool = False,
    ) -> Iterator[Verdict]:
        """End every call, the first one first, and yield the verdicts on them. The answer of the
        ``second`` model is given instead of the first one's, if there is one."""
        served, first = (called[0] if second is None else second), called[0]
        called = list(dict.fromkeys((*called, served)))
        self._served[request] = served
        self._calls[request, called] = True
        self._first[request] = first
        for number, model in enumerate(called):
            call_id = f"{request}.{number}"
            turn = Turn.ONLY
            if second is not None:
                turn = {first: Turn.REPLACED, second: Turn.SECOND}.get(model, turn)
            example = self._example(request, model, first, turn, is_exploration)
            self.engine.apply(
                Settled(
                    position=self._next_position(),
                    zoo=self.engine.zoo.name,
                    call_id=call_id,
                    candidate=self.recording.models[model],
                    prompt_characters=len(self.recording.prompts.texts[self._prompt[request]]),
                    prompt_tokens=0,
                    completion_tokens=self._cost[request][model] / self._price[model],
                    example=example,
                    given=(),
                )
            )
            is_labelled = turn is not Turn.REPLACED or self.engine.checks_replaced(str(request))
            if is_labelled and not math.isnan(self._label[request][model]):
                yield Verdict(request, model, call_id, model == served, example)

    def _example(
        self, request: int, model: int, first: int, turn: Turn, is_exploration: bool
    ) -> Example:
        prompt, answers, before = self._read[self._prompt[request]], self.recording.answers, None
        if answers is not None and model != first:
            before = Before(self.recording.models[first], answers[request, first])
        return Example(
            str(request),
            self.engine.encoder.name,
            prompt.features,
            self.recording.models[model],
            is_exploration,
            prompt.surface,
            answer=None if answers is None else answers[request, model],
            before=before,
            turn=turn,
        )

    def _judge(self, label: Verdict) -> None:
        satisfaction = self._label[label.request][label.model]
        weight = label_weight(satisfaction, self._response_bias)
        self._note(label)
        self.engine.apply(
            Labelled(
                position=self._next_position(),
                zoo=self.engine.zoo.name,
                service_level=label.level,
                request_id=str(label.request),
                call_id=label.call_id,
                alpha=float(self._aim[label.request]),
                is_served=label.is_served,
                given=Given(
                    LabelKind.FEEDBACK, "recording", satisfaction, weight, label.probability
                ),
                earlier=(),
                example=label.example,
                of_choice=label.of_choice,
            )
        )

    def _note(self, label: Verdict) -> None:
        """Record the label of a served call."""
        if label.is_served:
            self._served_labels[label.request] = self._label[label.request][label.model]

    def _next_position(self) -> int:
        self._position += 1
        return self._position
