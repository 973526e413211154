"""A run that is watched first: the requests are served as before, and decided in shadow."""

from dataclasses import dataclass, replace

from litellm_messplus.core.engine import Engine
from litellm_messplus.replay.recording import Matrix, Recording
from litellm_messplus.replay.run import Run, Verdict
from litellm_messplus.replay.summary import Outcome
from litellm_messplus.runtime.draws import uniform
from litellm_messplus.runtime.vocabulary import WARM_UP, level_before
from litellm_messplus.switching.forecast import DecidedAside, Happened, forecast

SAMPLE = 0.5
"""Share of watched requests with an unseen call to another model: a recording is short."""
FEWEST = 100
"""Requests that a forecast needs, after those in which the router learns most."""


@dataclass(frozen=True, slots=True)
class Watch:
    """The watch over the first ``requests`` of a run, served by ``before``, with a ``sample`` of
    unseen calls."""

    requests: int
    before: str
    sample: float = SAMPLE


@dataclass(frozen=True, slots=True)
class Aside:
    """A request decided in shadow, by its place in the run, with the index of the chosen
    model."""

    request: int
    choice: int
    decided: DecidedAside


class WatchedRun(Run):
    """One pass over a recording whose first requests are watched. ``forecast`` is that of the
    moment of the switch."""

    def __init__(
        self,
        engine: Engine,
        recording: Recording,
        labels: Matrix,
        watch: Watch,
        seed: int,
        delay: int = 0,
    ) -> None:
        super().__init__(engine, recording, labels, delay)
        self._seed = seed
        self.forecast = forecast(())
        self._watch = watch
        name = level_before(self.level.name)
        self._level_before = self.level.model_copy(update={"name": name})
        self._asides: list[Aside] = []
        self._labelled: set[tuple[int, int]] = set()

    def _serve(self, request: int) -> bool:
        """Serve a request as before, or, after the switch, as the router chooses."""
        if request < self._watch.requests:
            return self._serve_before(request)
        if request == self._watch.requests:
            self._fold_in(request)
            self.forecast = forecast(self._known(), upcoming=len(self.recording) - request)
        return super()._serve(request)

    def _serve_before(self, request: int) -> bool:
        """Decide in shadow; for a sampled request, call the choice too, or, if that serves anyway,
        the next best."""
        self._fold_in(request)
        choice = self._decide(request, self._level_before)
        decision = choice.decision
        served, chosen = self.place[self._watch.before], self.place[decision.chosen]
        others = [self.place[name] for name in decision.ranking if self.place[name] != served]
        draw = uniform(self._seed, "replay/sample", request)
        unseen = others[:1] if draw < self._watch.sample else []
        self._note_decided(request, self._level_before.name, choice, 1 + len(unseen))
        expected = {each.candidate: each for each in choice.situation.estimates}
        own = expected[decision.chosen]
        aside = DecidedAside(
            conversation=str(request),
            predicted=own.satisfaction,
            expected_cost=own.cost,
            is_seen=chosen == served,
            extra_cost=sum(expected[name].cost for name in decision.explored),
            alpha=self.level.alpha,
            costs={name: each.cost for name, each in expected.items()},
            rates={name: each.satisfaction for name, each in expected.items()},
        )
        self._asides.append(Aside(request, chosen, aside))
        for verdict in self._settle(request, [served, *unseen], is_exploration=bool(unseen)):
            self._late.add(request, self._as_before(verdict, chosen, is_sampled=bool(unseen)))
        return bool(unseen)

    def _as_before(self, verdict: Verdict, chosen: int, *, is_sampled: bool) -> Verdict:
        """Change a verdict to what the log holds for a request that was served as before."""
        return replace(
            verdict,
            level=self._level_before.name,
            of_choice=verdict.model == chosen,
            probability=self._watch.sample if is_sampled and not verdict.is_served else None,
        )

    def _judge(self, verdict: Verdict) -> None:
        self._labelled.add((verdict.request, verdict.model))
        super()._judge(verdict)

    def _known(self) -> list[DecidedAside]:
        """Return the shadow decisions, with what is known of the chosen models by now."""
        return [self._seen(each) for each in self._asides if each.request >= WARM_UP]

    def _seen(self, aside: Aside) -> DecidedAside:
        at = (aside.request, aside.choice)
        models = enumerate(self.recording.models)
        return replace(
            aside.decided,
            judged=tuple(name for n, name in models if (aside.request, n) in self._labelled),
            satisfaction=self._label[aside.request][aside.choice] if at in self._labelled else None,
            cost=float(self.recording.cost[at]) if self._calls[at] else None,
        )


def happened(outcome: Outcome, watched: int) -> Happened:
    """Return the outcome of the requests after the watched ones, by the truth of their answers."""
    satisfied, cost = outcome.satisfied[watched:], outcome.cost[watched:]
    return Happened(len(cost), len(cost), float(satisfied.mean()), float(cost.mean()))
