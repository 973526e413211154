"""The promise and the arm of a request: which requests are routed, and which are served as before
the router; which of those are decided in shadow, and the budget of the calls for that."""

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.decided import DecidedRequest
from litellm_messplus.brain.messages import HEADER, NAME_KEY, Asked, WantedLevel
from litellm_messplus.brain.modes import LiveModes
from litellm_messplus.core.decision import Reason
from litellm_messplus.labels.buying import KeyShares
from litellm_messplus.records import RequestRecord
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.draws import uniform
from litellm_messplus.runtime.errors import RefusedError
from litellm_messplus.runtime.purse import Purse
from litellm_messplus.runtime.tasks import Periodic
from litellm_messplus.runtime.vocabulary import level_before, level_grants
from litellm_messplus.settings.promise import ServiceLevel
from litellm_messplus.settings.schema import DEFAULT_LEVEL, ZooSettings
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store.judging import sampled_on
from litellm_messplus.switching.modes import (
    DECIDED_PER_SECOND,
    LITELLM,
    ROUTED,
    Arm,
    Pace,
    Trial,
)

# The daily budget of the unseen calls of watched zoos.

READ_SECONDS = 5.0
"""Seconds between two readings of what all workers spent."""
LAG_SECONDS = 60.0
"""Seconds until the cost of a call that was paid for is in the log."""


class SamplePurses:
    """The budgets for samples of the zoos that have one, limited for each key; one per worker.
    A zoo without a budget pays for every call; one with a budget pays for none until the log has
    been read."""

    def __init__(self, zoos: Mapping[str, ZooSettings], database: AsyncEngine) -> None:
        budgets = {name: zoo.watch.budget_per_day for name, zoo in zoos.items()}
        self._budgets = {name: each for name, each in budgets.items() if each is not None}
        self._purses = {name: Purse(LAG_SECONDS) for name in self._budgets}
        self._keys = {name: KeyShares() for name in self._budgets}
        self._database = database

    def pay(self, zoo: str, request_id: str, key: str | None, cost: float) -> bool:
        """Reserve the cost of a call for a request of a key; return False if the zoo's budget does
        not allow it."""
        if zoo not in self._purses:
            return True
        purse, keys = self._purses[zoo], self._keys[zoo]
        keys.count(key, datetime.now(UTC).date())
        left = purse.left
        if cost > left or not keys.allows(key, cost, left, self._budgets[zoo]):
            return False
        keys.spend(key, cost)
        purse.reserve(request_id, cost)
        purse.settled(request_id)
        return True

    def start(self, periodic: Periodic) -> None:
        """Begin to read what was spent, if any zoo has a budget."""
        if self._purses:
            failed = "what samples cost was not read"
            periodic.every(READ_SECONDS, self.look, "sample_cost_failures", failed)

    async def look(self) -> None:
        """Read what all workers spent today. Raises SQLAlchemyError."""
        read_at, now = time.monotonic(), datetime.now(UTC)
        async with self._database.connect() as connection:
            spent = await sampled_on(connection, now.date())
        for zoo, purse in self._purses.items():
            purse.learn(self._budgets[zoo] - spent.get(zoo, 0.0), read_at)


# Which requests are served as before, and which of those are decided in shadow.


class Arms:
    """The draws of one worker: which requests are routed, which of the others are decided in
    shadow, and for which of those another model is called unseen, within a budget."""

    def __init__(
        self, modes: LiveModes, purses: SamplePurses, counters: Counters, *, seed: int
    ) -> None:
        self._modes = modes
        self._purses = purses
        self._counters = counters
        self._seed = seed
        self._paces: dict[str, Pace] = {}

    def arm(self, zoo: Zoo, request: Asked) -> tuple[Trial, str | None]:
        """Draw the arm of a request, and return it with what serves it, None if it is routed."""
        mode = self._modes.now[zoo.name]
        if request.is_switched_off:
            return Trial(Arm.OFF), mode.before or zoo.largest
        if not mode.draws:
            return ROUTED, None
        draw = self._draw(zoo.name, request) if mode.splits else None
        arm = mode.arm(draw)
        before = None if arm is Arm.ROUTED else mode.before or LITELLM
        return Trial(arm, conversation_draw=draw), before

    def drawn(self, zoo: Zoo, request: Asked, trial: Trial) -> Trial:
        """Add the draw of the conversation, which every decided request has."""
        if trial.conversation_draw is not None:
            return trial
        return replace(trial, conversation_draw=self._draw(zoo.name, request))

    def is_due(self, zoo: Zoo, request_id: str) -> bool:
        """Tell whether a request is decided in shadow: every sampled one, and a limited number of
        the others per second."""
        if self._is_sampled(zoo, request_id):
            return True
        pace = self._paces.setdefault(zoo.name, Pace(DECIDED_PER_SECOND))
        return pace.take(time.monotonic())

    def sampled(
        self, decided: DecidedRequest, record: RequestRecord, serves: str
    ) -> tuple[str, ...]:
        """Choose the candidate to call unseen for a sampled request: the chosen one, or the next
        best if the chosen one serves anyway."""
        zoo = decided.intake.zoo
        others = [name for name in decided.choice.decision.ranking if name != serves]
        if not others or record.reason is Reason.NONE_HEALTHY:
            return ()
        if decided.question.is_alone or not self._is_sampled(zoo, record.request_id):
            return ()
        cost = record.estimated_cost[others[0]]
        if not self._purses.pay(zoo.name, record.request_id, record.asker.key_hash, cost):
            self._counters.add("samples_over_budget")
            return ()
        return (others[0],)

    def _draw(self, zoo: str, request: Asked) -> float:
        return uniform(self._seed, f"{zoo}/arm", conversation_of(request))

    def _is_sampled(self, zoo: Zoo, request_id: str) -> bool:
        sample = zoo.settings.watch.sample
        return sample > 0.0 and uniform(self._seed, f"{zoo.name}/sample", request_id) < sample


def shadow_level(level: ServiceLevel) -> ServiceLevel:
    """Return the level under which requests of ``level`` that are served as before count."""
    return level.model_copy(update={"name": level_before(level.name)})


LONGEST_OPENING = 20
"""Most turns that are searched for the first one of a user."""


def conversation_of(request: Asked) -> str:
    """Return a digest that all requests of a conversation share: of the client's session, else of
    the system prompt and the first user message, each combined with the key."""
    if request.session is not None:
        parts = ["session", request.session]
    else:
        turns = request.conversation.turns[:LONGEST_OPENING]
        roles = [turn.role for turn in turns]
        first = roles.index("user") + 1 if "user" in roles else LONGEST_OPENING
        parts = ["opening", *[turn.text for turn in turns[:first]]]
    digest = blake2b(digest_size=16)
    for part in (request.key_hash or "", *parts):
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(encoded) + encoded)
    return digest.hexdigest()


# The promise that a request counts towards: its key's, its team's, the zoo's own, or that of the
# level that it asks for, where its key may choose. What was asked for counts in a stream of its own
# (`gold:asked`): so no caller changes what the keys of the level are promised.


def service_level(zoo: Zoo, wanted: WantedLevel, counters: Counters) -> ServiceLevel:
    """Find the level that the operator states of the key or team; count and log an unknown name."""
    name = DEFAULT_LEVEL if wanted.stated is None else str(wanted.stated)
    level = zoo.levels.get(name)
    if level is None:
        counters.failure(
            "unknown_service_levels",
            f"no service level {name!r} in zoo {zoo.name!r}: the default one is used",
        )
        return zoo.levels[DEFAULT_LEVEL]
    return level


def granted_level(
    zoo: Zoo, own: ServiceLevel, wanted: WantedLevel, counters: Counters
) -> ServiceLevel:
    """Return the level that a request of a key whose level is ``own`` asks for; its own if it asks
    for none, and, which is counted, if it may not have it.

    Raises RefusedError for a level that the zoo does not have."""
    if wanted.sent is None or wanted.sent == own.name:
        return own
    name = str(wanted.sent)
    if name not in zoo.levels:
        raise RefusedError(
            f"{HEADER}, or {NAME_KEY} in the metadata: given {name[:64]!r}; "
            f"allowed: {', '.join(zoo.levels)}"
        )
    if name not in (zoo.settings.callers_may if wanted.may is None else wanted.may):
        counters.add("asked_in_vain")
        return own
    return zoo.streams[level_grants(name)]
