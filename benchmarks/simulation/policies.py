"""Policies that serve a session: which turns they decide, and by which costs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.simulation.world import Assumed, Model, Session, SimulatedZoo, predicted
from litellm_messplus.core.caches import Remaining, Turn, hold
from litellm_messplus.core.line import Warm, warm_after
from litellm_messplus.costs.price import Usage


def per_conversation(held: Sequence[float], typical: Sequence[float]) -> list[float]:
    """Divide the cost of a conversation with each model by its average over the models. Long ones
    cost more with every model, and at plain costs would be left to the cheapest: they would be the
    unsatisfied ones.

    ``typical`` is the cost of an average conversation with each model, and sets the unit.
    """
    average = sum(held) / len(held)
    scale = sum(typical) / len(typical)
    return [scale * cost / average if average > 0.0 else 0.0 for cost in held]


@dataclass(slots=True)
class Course:
    """A session on its way. ``held`` is the place of the model that served last, None at first;
    ``warm`` what each has in its cache."""

    session: Session
    held: int | None = None
    turn: int = 0
    warm: dict[int, Warm] = field(default_factory=dict)
    served: list[int] = field(default_factory=list)
    cost: float = 0.0

    @property
    def now(self) -> float:
        return self.session.at[self.turn]

    @property
    def is_user_turn(self) -> bool:
        return self.session.is_user[self.turn]


IsDecided = Callable[[Course, Sequence[Model]], bool]


def every_turn(course: Course, models: Sequence[Model]) -> bool:
    """Decide each turn, as a router that knows of no conversations."""
    return True


def user_turns(course: Course, models: Sequence[Model]) -> bool:
    """Decide where a person spoke; never in a tool loop."""
    return course.is_user_turn


def first_turn(course: Course, models: Sequence[Model]) -> bool:
    """Decide once, and then hold for good."""
    return course.held is None


def when_cold(course: Course, models: Sequence[Model]) -> bool:
    """Decide at first, and where a person spoke and nothing is warm any more."""
    if course.held is None:
        return True
    warm = course.warm[course.held].tokens_at(course.now, models[course.held].price)
    return course.is_user_turn and warm == 0.0


@dataclass(frozen=True, slots=True)
class Policy:
    """A way to decide; with ``knows_the_cache`` by what holding costs, else by the plain cost of
    this call."""

    name: str
    is_decided: IsDecided
    knows_the_cache: bool


EACH_TURN = Policy("decided each turn", every_turn, False)
HELD = Policy("held, decided when cold", when_cold, True)
POLICIES = (
    EACH_TURN,
    Policy("held in tool loops only", user_turns, False),
    HELD,
    Policy("decided each user turn", user_turns, True),
    Policy("held for good", first_turn, True),
)


LONGEST = 4_096
"""Turns of a session that are distinguished."""


class Server:
    """Serves sessions by a policy, at a price of satisfaction in units of what an average model
    costs: the model with the least cost - price * satisfaction."""

    def __init__(self, zoo: SimulatedZoo, assumed: Assumed, remaining: Remaining) -> None:
        self._zoo = zoo
        self._assumed = assumed
        self._after = [remaining.after(turns) for turns in range(LONGEST)]
        self._plain: dict[tuple[int, int], float] = {}
        self._satisfying: dict[float, list[float]] = {}
        """Of every model, by what a turn shows: each session is served many times."""

    def serve(self, session: Session, policy: Policy, price: float) -> Course:
        """Serve the whole session, charged as a provider charges."""
        course, models = Course(session), self._zoo.models
        for turn in range(len(session)):
            course.turn = turn
            if policy.is_decided(course, models):
                course.held = self._best(course, policy, price)
            self._call(course)
        return course

    def _best(self, course: Course, policy: Policy, price: float) -> int:
        """Choose a model by relative costs: long sessions would else be left to the cheapest."""
        places = range(len(self._zoo.models))
        costs = [self._cost(course, place, policy) for place in places]
        relative = per_conversation(costs, [1.0] * len(costs))
        satisfying = self._predicted(course.session.seen[course.turn])
        return min(places, key=lambda place: relative[place] - price * satisfying[place])

    def _predicted(self, seen: float) -> list[float]:
        found = self._satisfying.get(seen)
        if found is None:
            found = [predicted(model, seen, self._assumed) for model in self._zoo.models]
            self._satisfying[seen] = found
        return found

    def _cost(self, course: Course, place: int, policy: Policy) -> float:
        model = self._zoo.models[place]
        prompt = self._prompt(course.turn)
        if policy.knows_the_cache:
            to_come = self._after[min(course.turn + 1, LONGEST - 1)][model.name]
            turn = Turn(prompt, self._assumed.growth_tokens, self._assumed.answer_tokens)
            return hold(model.price, turn, self._warm(course, place), to_come)
        known = self._plain.get((place, course.turn))
        if known is None:
            known = model.price.of(prompt, float(self._assumed.answer_tokens))
            self._plain[place, course.turn] = known
        return known

    def _call(self, course: Course) -> None:
        """Let the held model answer, which is charged and leaves the prompt in its cache."""
        assert course.held is not None
        place, prompt = course.held, int(self._prompt(course.turn))
        price = self._zoo.models[place].price
        cached = int(self._warm(course, place))
        is_written = price.written_surcharge > 0.0 and prompt >= price.cached_from
        usage = Usage(
            prompt,
            self._assumed.answer_tokens,
            cached_tokens=cached,
            written_tokens=prompt - cached if is_written else 0,
        )
        course.cost += price.of_usage(usage)
        course.warm[place] = warm_after(
            usage, price, 4 * prompt, course.now, seconds=self._zoo.cache_seconds
        )
        course.served.append(place)

    def _prompt(self, turn: int) -> float:
        return float(self._assumed.prefix_tokens + turn * self._assumed.growth_tokens)

    def _warm(self, course: Course, place: int) -> float:
        warm = course.warm.get(place)
        return 0.0 if warm is None else warm.tokens_at(course.now, self._zoo.models[place].price)
