"""The engine: decides for one zoo, and folds the log into the state that it decides from.

The proxy and the replay both drive this class, so that a replay shows what production does.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from litellm_messplus.core.answer import AnswerReading, AnswerSurface
from litellm_messplus.core.caches import Ahead
from litellm_messplus.core.decision import Decision, Situation, aim, raised
from litellm_messplus.core.encoder import EncoderFacts
from litellm_messplus.core.entries import (
    CandidateChanged,
    Decided,
    Entry,
    Settled,
)
from litellm_messplus.core.expectations import Expectations
from litellm_messplus.core.held import alone, held, upwards, without_trials
from litellm_messplus.core.policy import build_policy
from litellm_messplus.core.predictor import Seen
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.prompt_heads import LengthHeads
from litellm_messplus.core.second_answer import CHECKED_SHARE, second
from litellm_messplus.core.verdict import Rule
from litellm_messplus.core.zoo_state import ExpectedUse, ZooState
from litellm_messplus.costs.price import Price
from litellm_messplus.costs.usage import TokenEstimator
from litellm_messplus.runtime.draws import uniform
from litellm_messplus.runtime.stand_ins import replace
from litellm_messplus.settings.promise import SecondAnswer, ServiceLevel
from litellm_messplus.settings.zoo import Zoo

# A decision from outside: the question, the choice, and the reading of an answer.


@dataclass(frozen=True, slots=True)
class Question:
    """A request that any of ``candidates`` could serve now.

    Missing parts of ``prompt`` stand at the average of all prompts. ``most_completion_tokens`` is
    the longest answer that the request allows, and so the longest expected. ``prompt_tokens`` are
    by candidate, if counted; else they are estimated from the characters. It ``is_gated`` if other
    healthy candidates could not take it. ``ahead`` is what it finds in its candidates' caches, and
    what will follow it there; unknown for candidates without an entry. It ``is_alone`` if no
    candidate may be called in addition to the serving one. It ``may_go_on`` if its
    answer may be replaced by a second one.
    """

    request_id: str
    level: ServiceLevel
    prompt: Prompt
    prompt_characters: int
    candidates: tuple[str, ...]
    most_completion_tokens: float = math.inf
    prompt_tokens: Mapping[str, float] = field(default_factory=dict)
    is_gated: bool = False
    ahead: Mapping[str, Ahead] = field(default_factory=dict)
    is_alone: bool = False
    may_go_on: bool = False

    @property
    def is_forced(self) -> bool:
        """Whether only one candidate can take it."""
        return self.is_gated and len(self.candidates) == 1


Labelled = Callable[[Situation], bool | None]
"""Whether all answers to a request will get a label; None if only the log shows it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A decision and its situation."""

    situation: Situation
    decision: Decision


# The engine.


class Engine:
    """The decisions of one zoo. ``state`` is exactly the fold of the log up to some position.
    Requests decided since are numbered, and count as in flight with their expected
    shortfall; ``newest`` is each level's last decision.

    ``usual_parts`` is set from outside: the cost of a candidate's calls as a part of that without a
    prompt cache. It is not part of the fold, nor are the prices of ``reprice``. ``zoo`` has the
    candidates that are logged so far.
    """

    def __init__(self, zoo: Zoo, encoder: EncoderFacts, seed: int) -> None:
        self.zoo = zoo
        self._configured = zoo
        self.prices_now: Mapping[str, Price] = {}
        """The prices last passed to ``reprice``, also of candidates that are not known yet."""
        self.encoder = encoder
        self._seed = seed
        self.newest: dict[str, Decision] = {}
        self.usual_parts: dict[str, float] = {}
        self._unfolded: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self.resume(self.empty_state())

    def resume(self, state: ZooState) -> None:
        """Replace the state, and continue from it."""
        self.state = state
        self._see_zoo()

    def reprice(self, prices: Mapping[str, Price]) -> None:
        """Decide by these prices from now on, for the candidates that have one."""
        if prices != self.prices_now:
            self.prices_now = dict(prices)
            self._see_zoo()

    @property
    def logged_prices(self) -> Mapping[str, Price]:
        """The prices from the configuration and the log."""
        return {**self._configured.prices, **self.state.catalog.prices}

    def empty_state(self) -> ZooState:
        """Build the state before any request."""
        encoder = self.encoder
        policy = build_policy(
            self.zoo.settings, self.zoo.configured, encoder.dimension, is_fast=encoder.is_fast
        )
        estimators = {name: TokenEstimator() for name in self.zoo.configured}
        models = len(self.zoo.configured)
        lengths = LengthHeads(models, encoder.dimension)
        rule = Rule(self.zoo.settings.labels.precedence)
        return ZooState(
            encoder.name, rule, policy, estimators, lengths, ExpectedUse.none_yet(models)
        )

    def decide(self, question: Question, labelled: Labelled | None = None) -> Choice:
        """Decide, and number the request: it counts in ``t`` from now on. ``labelled`` is called
        once, before the policy."""
        level, situation = question.level, self.situation(question)
        if labelled is not None:
            situation = replace(situation, is_labelled=labelled(situation))
        if question.is_alone:
            untried = alone(self._untried(question, situation))
            return self._numbered(question, situation, untried)
        return self._numbered(question, situation, self.state.policy.decide(level, situation))

    def hold(self, question: Question, candidate: str) -> Choice:
        """Keep a candidate without a decision. The request is numbered as any other.

        Raises KeyError for a candidate that cannot take the request.
        """
        situation = self.situation(question)
        return self._numbered(
            question, situation, held(self._untried(question, situation), situation, candidate)
        )

    def go_up(self, question: Question, candidate: str) -> Choice | None:
        """Go up from a candidate that made no progress; None, without a number, if none is better.
        Raises the errors of ``hold``."""
        situation = self.situation(question)
        better = upwards(self._untried(question, situation), situation, candidate)
        return None if better is None else self._numbered(question, situation, better)

    def _untried(self, question: Question, situation: Situation) -> Decision:
        """Return the policy's decision without exploration or trials."""
        return self.state.policy.decide(question.level, without_trials(situation))

    def _numbered(self, question: Question, situation: Situation, decision: Decision) -> Choice:
        level = question.level.name
        expected_shortfall = situation.alpha - decision.expected_satisfaction
        self._unfolded[level][question.request_id] = expected_shortfall
        self.newest[level] = decision
        return Choice(situation, decision)

    def checks_replaced(self, request_id: str) -> bool:
        """Tell whether a label is to be found for an answer that was replaced: its user's verdict
        is on the second one."""
        stream = f"{self.zoo.name}/replaced"
        return uniform(self._seed, stream, request_id) < CHECKED_SHARE

    def situation(self, question: Question) -> Situation:
        """Build the situation in which the policy decides, without numbering the request."""
        level, request_id = question.level, question.request_id
        unfolded = self._unfolded[level.name]
        t = self.state.requests[level.name] + len(unfolded) + 1
        stream = f"{self.zoo.name}/{level.name}"
        expectations = self.expectations
        prompt_tokens = expectations.tokens(
            question.candidates, question.prompt_tokens, question.prompt_characters
        )
        aimed = self._aim(level)
        estimates = expectations.estimates(
            question.prompt,
            prompt_tokens,
            question.most_completion_tokens,
            question.ahead,
            self.usual_parts,
        )
        fresh = self._newcomers(aimed, question.candidates)
        usual = tuple([name for name in question.candidates if name not in fresh])
        reads = question.may_go_on and self.zoo.settings.second_answer is SecondAnswer.AUTO
        spread = self.state.policy.spread(usual) if reads else None
        return Situation(
            t=t,
            alpha=aimed,
            queue=self.state.policy.queue(level.name),
            in_flight=sum(unfolded.values()),
            estimates=tuple([each for each in estimates if each.candidate not in fresh]),
            largest=self.zoo.largest,
            exploration_draw=uniform(self._seed, stream, request_id),
            choice_draw=uniform(self._seed, f"{stream}/choice", request_id),
            outlook=self.expectations.outlook(usual, self.usual_parts, spread),
            spread=spread,
            is_forced=question.is_forced,
            newcomers=tuple([each for each in estimates if each.candidate in fresh]),
        )

    def reads(self, question: Question, choice: Choice, answer: AnswerSurface) -> AnswerReading:
        """Read the answer of the chosen candidate, and decide whether another one is called."""
        situation, decision = choice.situation, choice.decision
        prompt, shown = self.state.policy.shown(decision.chosen, question.prompt, Seen(answer))
        spread = situation.spread
        if not decision.reads or spread is None or decision.price is None:
            return AnswerReading(prompt, shown)
        estimates = situation.estimates
        names = [each.candidate for each in estimates]
        chances, costs = [e.satisfaction for e in estimates], [e.cost for e in estimates]
        place = names.index(decision.chosen)
        then = second(place, shown, chances, costs, spread, decision.price)
        if then is None:
            return AnswerReading(prompt, shown)
        return AnswerReading(prompt, shown, names[then.place], then.chance)

    def _newcomers(self, alpha: float, candidates: tuple[str, ...]) -> tuple[str, ...]:
        """Return the candidates on trial; none if no other candidate could serve."""
        fresh = self.state.policy.newcomers(alpha, candidates)
        return () if len(fresh) == len(candidates) else fresh

    def forget(self, request_id: str) -> None:
        """Stop counting a request as in flight: it is in the log, or never will be."""
        for unfolded in self._unfolded.values():
            unfolded.pop(request_id, None)

    def expect_nothing(self, request_id: str) -> None:
        """Keep the number of a request, but expect nothing of its decision: another model serves
        it, or none."""
        for unfolded in self._unfolded.values():
            if request_id in unfolded:
                unfolded[request_id] = 0.0

    def apply(self, entry: Entry) -> None:
        """Fold one entry of the log in."""
        if isinstance(entry, Decided):
            self.forget(entry.request_id)
        version = self.state.use.version
        self.state.apply(entry)
        if isinstance(entry, Settled):
            self.expectations.calls_changed()
        if isinstance(entry, CandidateChanged) or self._is_unsettled:
            self._see_zoo()
        if self.state.use.version != version:  # not while a request waits for it
            self.expectations.prompts_changed(self.usual_parts)

    @property
    def _is_unsettled(self) -> bool:
        """Whether the fold has just set the anchor."""
        return self.state.catalog.anchor is not None and self.zoo.anchor is None

    def _see_zoo(self) -> None:
        """Update the zoo with the current candidates and prices."""
        catalog, known = self.state.catalog, self.state.candidates
        prices = {**self._configured.prices, **catalog.prices, **self.prices_now}
        self.zoo = self._configured.live(
            {name: prices[name] for name in known}, catalog.absent, catalog.anchor
        )
        self.expectations = Expectations(self.zoo, self.state)

    def _aim(self, level: ServiceLevel) -> float:
        answered = self.state.policy.answered_requests(level.name)
        if level.confidence is None:
            return level.alpha
        requests = self.state.requests[level.name]
        return aim(level.alpha, raised(level.alpha, answered, requests, level.confidence))
