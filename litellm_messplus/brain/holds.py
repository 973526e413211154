"""Which deployment serves a conversation: queried before each decision, updated by each answer.

What was served before a start is read from the log (`line_log.py`). On any failure here, the
request is decided as if it were alone."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from litellm_messplus.brain.messages import Asked, Continued, Pin, Replica
from litellm_messplus.core.caches import Ahead, Habits, Turn, now
from litellm_messplus.core.decision import Reason
from litellm_messplus.core.engine import Choice, Engine, Question
from litellm_messplus.core.hold import (
    Hold,
    LinePlace,
    Signs,
    Trouble,
    hold_of,
    may_go_up,
)
from litellm_messplus.core.line import (
    CACHE_SECONDS,
    VLLM_SECONDS,
    Line,
    LineRequest,
    Place,
    warm_after,
)
from litellm_messplus.core.lines import Lines
from litellm_messplus.records import CallRecord
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.stand_ins import replace
from litellm_messplus.settings.serving import HoldMode

# Where a request stands, which deployment holds it, and what the router does with both.


@dataclass(frozen=True, slots=True)
class Standing:
    """The standing of a request: its place, its question with the cached tokens per candidate, and
    why it is held, or no longer held. ``pin`` is what holds it, or None. ``apart`` is the question
    used for a switch, if trouble may break the hold. ``session`` is the digest of the session that
    the client named, if verdicts may be on it."""

    place: Place
    question: Question
    hold: Hold | None = None
    pin: Pin | None = None
    apart: Question | None = None
    session: str | None = None

    def choose(self, engine: Engine) -> Choice | None:
        """Choose the candidate that holds it, or a better one upon trouble; None if it is to be
        decided."""
        if self.pin is None:
            return None
        if self.apart is not None:
            better = engine.go_up(self.apart, self.pin.candidate)
            if better is not None:
                return better
        return engine.hold(self.question, self.pin.candidate)

    def logged(self, reason: Reason) -> LinePlace:
        """Return the logged place of a request that was decided for that reason."""
        line = self.place.line
        hold = Hold.TROUBLE if reason is Reason.TROUBLE else self.hold
        prefix = self.place.prompt.hex()
        return LinePlace(line.conversation, line.name, prefix, self.place.turn, hold, self.session)

    def followed(self, choice: Choice) -> Pin | None:
        """Note that the choice is followed; returns the pin if the choice keeps to it."""
        if choice.decision.reason is Reason.TROUBLE:
            self.place.line.went_up = True
        follows = self.pin is not None and choice.decision.chosen == self.pin.candidate
        return self.pin if follows else None


@dataclass(frozen=True, slots=True)
class _Zoo:
    """A zoo that holds its conversations: its engine, its habits, and when it holds."""

    engine: Engine
    habits: Habits
    hold: HoldMode


CandidateOf = Callable[[str, str | None], str | None]
"""Finds the candidate of a zoo that a deployment is a replica of; None if it is not of that zoo."""


class Holds:
    """The holds of all zoos. Nothing is held until ``lines`` exists, which needs the database's
    key."""

    def __init__(
        self, engines: Mapping[str, Engine], candidate_of: CandidateOf, counters: Counters
    ) -> None:
        self._zoos = {
            name: _Zoo(engine, Habits(engine.zoo.candidates), hold)
            for name, engine in engines.items()
            if (hold := engine.zoo.settings.hold) != "never"
        }
        self._candidate_of = candidate_of
        self._counters = counters
        self._seconds: dict[str, float] = {}
        self.lines: Lines | None = None

    @property
    def is_on(self) -> bool:
        """Whether any zoo holds its conversations."""
        return bool(self._zoos)

    def begin(self, key: bytes) -> None:
        """Start to hold, with digests under that key."""
        self.lines = Lines(key, forgotten=self._forgotten)

    def holds(self, zoo: str) -> bool:
        """Tell whether the conversations of a zoo are held now."""
        return self.lines is not None and zoo in self._zoos

    def session_digest(self, named: str) -> str | None:
        """Return the logged digest of a session that a client named; None while nothing is held."""
        return None if self.lines is None else self.lines.session_digest(named)

    def standing(
        self, request: Asked, question: Question, barred: frozenset[str]
    ) -> Standing | None:
        """Find where a request stands, and remember its prompt; None if its zoo holds none, or on a
        failure."""
        known = self._zoos.get(request.zoo)
        if self.lines is None or known is None:
            return None
        try:
            known.habits.meet(known.engine.zoo.candidates)
            place = self.lines.find(_line_request(request), time.monotonic())
            able = self._able(request.replicas, question.candidates, barred)
            found = self._standing(known, question, place, request.signs, able)
            if request.session is None:
                return found
            return replace(found, session=self.session_digest(request.session))
        except Exception:
            self._counters.failure("identity_failures", "a request was decided as if it were alone")
            return None

    def called(self, place: Place, zoo: str, deployment: str) -> None:
        """Note which deployment answers, before it is logged: the next request may come first."""
        if self.lines is None:
            return
        with self._counters.tolerated("identity_failures", "who answers is not known"):
            self._called(self.lines, place, zoo, deployment)

    def _called(self, lines: Lines, place: Place, zoo: str, deployment: str) -> None:
        lines.called(place.line, self._candidate_of(zoo, deployment), deployment)

    def ended(self, place: Place, zoo: str, call: CallRecord, answer: Continued) -> None:
        """Note how the answered call of a request ended."""
        if self.lines is None:
            return
        with self._counters.tolerated("identity_failures", "an answer is not known again"):
            self._ended(self.lines, place, zoo, call, answer)

    def _ended(
        self, lines: Lines, place: Place, zoo: str, call: CallRecord, continued: Continued
    ) -> None:
        deployment = call.deployment_id or ""
        line = place.line
        # A stream may have failed over after its headers; a client that has left got none.
        if deployment and line.deployment != deployment and line.tip == place.prompt:
            self._called(lines, place, zoo, deployment)
        answer, given = continued.text, continued.ids
        ids = given if call.response_id is None else (*given, call.response_id)
        known = self._zoos[zoo]
        price = known.engine.zoo.prices.get(call.candidate or "")
        usage = None if call.is_cache_hit else continued.usage
        if price is None or usage is None:  # it warms no cache
            lines.ended(place, deployment, answer=answer, ids=ids)
            return
        at = time.monotonic()
        before = line.warm.get(deployment)
        is_warm = before is not None and before.tokens_at(at, price) > 0.0
        expected = (before.read or before.tokens) if before is not None and is_warm else None
        known.habits.called(place, deployment, usage, price, expected=expected)
        part = known.habits.usual_part(str(call.candidate))
        if part != 1.0 or call.candidate in known.engine.usual_parts:
            known.engine.usual_parts[str(call.candidate)] = part
        warm = warm_after(
            usage,
            price,
            place.characters,
            at,
            share=known.habits.share_found(deployment),
            seconds=self._seconds.get(deployment, CACHE_SECONDS),
        )
        lines.ended(place, deployment, answer=answer, ids=ids, warm=warm)
        unread = usage.prompt_tokens - usage.cached_tokens
        line.stored = usage.written_tokens / unread if unread > 0 else line.stored
        line.prompt_tokens, line.characters = float(usage.prompt_tokens), place.characters
        line.attached = place.attached

    def _standing(
        self,
        known: _Zoo,
        question: Question,
        place: Place,
        signs: Signs,
        able: Mapping[str, str],
    ) -> Standing:
        zoo, owner, parent = known.engine.zoo, place.line, place.parent
        if owner.deployment is None and parent is not None:  # whose tool calls it holds
            owner = parent
        deployment = signs.deployment or owner.deployment
        candidate = deployment and self._candidate_of(zoo.name, deployment)
        tokens = _tokens(known, question, place, owner)
        warm = self._warm(known, owner, able)
        read = replace(
            question,
            prompt_tokens=tokens,
            ahead=known.habits.ahead(
                question.candidates, warm, owner, tokens.get(candidate or "", 0.0)
            ),
        )
        found = warm.get(candidate or "", 0.0)
        saves = candidate in tokens and _saves(known, str(candidate), tokens[str(candidate)], found)
        hold = hold_of(known.hold, signs, saves=saves)
        if hold is None or not able:
            return Standing(place, read)
        if candidate is None:
            if place.turn > 1 or place.has_answers:
                self._counters.add("holds_unknown")
                return Standing(place, read, Hold.UNKNOWN)
            return Standing(place, read)
        if candidate not in able.values():
            self._counters.add("holds_broken")
            return Standing(place, read, Hold.LOST)
        pin = Pin(
            candidate,
            deployment if deployment in able else None,
            is_bound=not signs.is_portable,
            is_alone=signs.deployment is not None,
        )
        trouble = signs.trouble
        if place.is_again and parent is not None and parent.is_answered:
            trouble = trouble or Trouble.REGENERATED  # one that never came is no trouble
        apart = read if may_go_up(signs, trouble, went_up=owner.went_up) else None
        return Standing(place, _all_warm(read, found), hold, pin, apart)

    def _warm(self, known: _Zoo, line: Line, able: Mapping[str, str]) -> dict[str, float]:
        """Return the most tokens that a healthy deployment of each candidate has in its cache."""
        at, found = time.monotonic(), dict[str, float]()
        for deployment, warm in line.warm.items():
            candidate = able.get(deployment)
            if candidate is not None:
                tokens = warm.tokens_at(at, known.engine.zoo.prices[candidate])
                found[candidate] = max(found.get(candidate, 0.0), tokens)
        return found

    def _able(
        self, replicas: Sequence[Replica], candidates: Sequence[str], barred: frozenset[str]
    ) -> dict[str, str]:
        """Collect the deployments that can take the request, with their candidates; note for all of
        them how long they keep their cache."""
        able = {}
        for identity, candidate, is_vllm in replicas:
            if is_vllm:
                self._seconds.setdefault(identity, VLLM_SECONDS)
            if identity not in barred and candidate in candidates:
                able[identity] = candidate
        return able

    def _forgotten(self, line: Line) -> None:
        for known in self._zoos.values():
            known.habits.ended(line)


def _line_request(request: Asked) -> LineRequest:
    return LineRequest(
        request.request_id,
        request.zoo,
        request.key_hash or "",
        request.conversation,
        request.ids,
        request.session,
        request.continues,
    )


def _tokens(known: _Zoo, question: Question, place: Place, line: Line) -> dict[str, float]:
    """Expect the tokens of a prompt at each candidate: the same, if its line has shown them."""
    if line.prompt_tokens:
        return dict.fromkeys(question.candidates, known.habits.tokens(line, place))
    return known.engine.expectations.tokens(
        question.candidates, question.prompt_tokens, question.prompt_characters
    )


def _saves(known: _Zoo, candidate: str, tokens: float, warm: float) -> bool:
    """Tell whether the warm cache makes this call cheaper."""
    price, turn = known.engine.zoo.prices[candidate], Turn(tokens, 0.0, 0.0)
    return warm > 0.0 and now(price, turn, warm) < now(price, turn, 0.0, share=0.0)


def _all_warm(question: Question, tokens: float) -> Question:
    """Expect each candidate's cost as if the conversation were in its cache: savings are compared
    with that, and nothing is decided by it."""
    ahead = {name: Ahead(tokens or each.warm, each.share) for name, each in question.ahead.items()}
    return replace(question, ahead=ahead)
