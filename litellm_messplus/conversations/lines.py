"""Lines and conversations, recognised from earlier prompts without storing their text.

A prompt belongs to the line whose prompt it begins with: the whole prompt of an earlier request of
the same zoo and key. If such prompts belong to several conversations (many clients may ask the same
first question), the ids in it, its session, or the earlier answer must decide between them; if they
do not, it begins a conversation of its own: none is joined falsely. Only a known beginning proves
that a cache is warm.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from litellm_messplus.conversations.digests import Beginning, Chain, Digest, Digests
from litellm_messplus.conversations.line import Joined, Line, LineRequest, LoggedTurn, Place, Warm

# The owners of digests, in bounded memory: the oldest are forgotten.

POINTS = 100_000
"""Number of digests remembered, the newest: 3,000 agents' sessions of 30 requests."""
OWNERS = 8
"""Owners of one digest, the newest: so many may send the same prompt without being mixed up."""

Owner = TypeVar("Owner")


class _Point(Generic[Owner]):
    """One owner of a digest, the answer that it got there, and the owner before it."""

    __slots__ = ("answer", "before", "owner")

    def __init__(self, owner: Owner, before: "_Point[Owner] | None") -> None:
        self.owner = owner
        self.before = before
        self.answer: Digest | None = None


class Points(Generic[Owner]):
    """The owners of at most ``most`` digests, ``OWNERS`` each; a digest is as new as its newest."""

    def __init__(self, most: int = POINTS) -> None:
        self._most = most
        self._newest: dict[Digest, _Point[Owner]] = {}
        self._order: deque[Digest] = deque()

    def add(self, digest: Digest, owner: Owner) -> None:
        """Remember an owner, and forget the oldest digest if there are too many."""
        before = self._newest.get(digest)
        if before is not None and before.owner is owner:
            return
        self._newest[digest] = _Point(owner, before)
        if before is not None:
            self._shorten(digest)
            return
        self._order.append(digest)
        if len(self._order) > self._most:
            del self._newest[self._order.popleft()]

    def answered(self, digest: Digest, owner: Owner, answer: Digest) -> None:
        """Remember the answer that an owner got there; do nothing if the owner is forgotten."""
        for point in self._of(digest):
            if point.owner is owner:
                point.answer = answer

    def owners(self, digest: Digest, answer: Digest | None = None) -> list[Owner]:
        """List the owners, the newest last; if an answer is given, only those that got it."""
        found = [p.owner for p in self._of(digest) if answer is None or p.answer == answer]
        return found[::-1]

    def _of(self, digest: Digest) -> Iterator[_Point[Owner]]:
        point = self._newest.get(digest)
        while point is not None:
            yield point
            point = point.before

    def _shorten(self, digest: Digest) -> None:
        for place, point in enumerate(self._of(digest), start=1):
            if place == OWNERS:
                point.before = None


# The lines themselves.

LINES = 20_000
"""Number of lines remembered, the most recently used."""
UNUSED_SECONDS = 7_200.0
"""Seconds after which an unused line is forgotten: no provider's cache is warm for longer."""
SWEPT = 16
"""Unused lines forgotten per request, so that no request waits for many."""
WARM = 8
"""Deployments whose caches are remembered per line, the most recently called."""
IDS = 64
"""Ids looked up per prompt, and remembered per answer: the newest."""


class Lines:
    """The lines of one worker. ``key`` is secret and the same for all workers on a database;
    ``now`` is in seconds, of any monotonic clock. ``forgotten`` is called with each line that is
    no longer continued, and ``elsewhere`` with a prompt that is not known here."""

    def __init__(
        self,
        key: bytes,
        *,
        lines: int = LINES,
        points: int = POINTS,
        forgotten: Callable[[Line], None] = lambda line: None,
        elsewhere: Callable[[LineRequest, Digest], LoggedTurn | None] = lambda *_: None,
    ) -> None:
        self._forgotten = forgotten
        self._elsewhere = elsewhere
        self._digests = Digests(key)
        self._most = lines
        self._lines: OrderedDict[str, Line] = OrderedDict()
        self._prompts: Points[Line] = Points(points)
        self._ids: Points[Line] = Points(points)
        self._sessions: Points[Line] = Points(lines)

    def find(self, request: LineRequest, now: float) -> Place:
        """Find the place of a request, and remember its prompt."""
        self._sweep(now)
        chain = self._digests.chain(request.scope, request.conversation)
        continued = self._of_continued(request)
        self._look_elsewhere(request, chain.longest, now)
        found = self._by_prefix(request, chain)
        if continued is not None:
            place = _grown(request, chain.whole, continued)
        elif found is not None:
            place = self._joined(request, chain.whole, *found, now)
        else:
            place = self._apart(request, chain, now)
        self._keep(place.line, chain.whole.digest, now)
        if request.session is not None:
            self._sessions.add(self._session(request), place.line)
        return place

    def called(self, line: Line, candidate: str | None, deployment: str) -> None:
        """Record who answers, before the outcome is known: the next request may come first."""
        if line.candidate != candidate:
            line.held_from = max(line.requests, 1)
        line.candidate, line.deployment = candidate, deployment

    def ended(
        self,
        place: Place,
        deployment: str,
        *,
        answer: str = "",
        ids: Sequence[str] = (),
        warm: Warm | None = None,
    ) -> None:
        """Record the outcome of a request: the answer as the next prompt will contain it (with tool
        calls), the ids that it gave, and what the deployment that answered now has in its cache."""
        place.line.is_answered = True
        if warm is not None:
            _keep_warm(place.line, deployment, warm)
        if answer:
            self._prompts.answered(place.prompt, place.line, self._digests.of_answer(answer))
        for name in ids[-IDS:]:
            self._ids.add(self._digests.of_text(place.scope, name), place.line)

    def learn(self, logged: LoggedTurn, now: float) -> None:
        """Learn the state of a line that another worker served; a line that this worker knows as
        far is left as it is."""
        line = self._lines.get(logged.line)
        if line is None:
            line = Line(logged.line, logged.conversation, logged.prompt, now)
        elif line.requests >= logged.turn:
            if line.tip == logged.prompt:
                _learn_warm(line, logged)
            return
        line.requests = logged.turn - 1
        self._keep(line, logged.prompt, now)
        self.called(line, logged.candidate, logged.deployment)
        line.is_answered = True
        line.prompt_tokens, line.characters = logged.prompt_tokens, logged.characters
        _learn_warm(line, logged)

    def _look_elsewhere(self, request: LineRequest, longest: Beginning | None, now: float) -> None:
        """Learn who answered just before, if another worker got that request."""
        if longest is None or self._known(self._prompts.owners(longest.digest)):
            return
        logged = self._elsewhere(request, longest.digest)
        if logged is not None:
            self.learn(logged, now)

    def _by_prefix(self, request: LineRequest, chain: Chain) -> tuple[Line, Beginning] | None:
        """Find the line that shares the longest beginning, and that beginning; None if none is
        known, or if several conversations share it and nothing decides between them."""
        whole, longest = chain.whole, chain.longest
        if longest is None:
            return None  # many ask the same first question: alone it is no evidence
        if self._is_again(whole, longest):
            again = self._one_of(request, whole)
            return None if again is None else (again, whole)
        for beginning in chain.earlier():
            if self._known(self._prompts.owners(beginning.digest)):
                line = self._one_of(request, beginning)
                return None if line is None else (line, beginning)
        return None

    def _is_again(self, whole: Beginning, before: Beginning) -> bool:
        """Tell whether only a line that had come as far can be meant: another that ends just before
        may be coming as far for the first time."""
        owners = self._known(self._prompts.owners(whole.digest))
        here = {line.conversation for line in owners}
        ends = self._known(self._prompts.owners(before.digest))
        rivals = {line.conversation for line in ends if line.tip == before.digest}
        return bool(here) and rivals <= here

    def _one_of(self, request: LineRequest, beginning: Beginning) -> Line | None:
        """Find the line of this prompt: the newest if all are of one conversation, else that of the
        conversation that the ids, the session or the answer indicate."""
        owners = self._known(self._prompts.owners(beginning.digest))
        if len(_conversations(owners)) > 1:
            owners = self._owning(request, beginning, owners)
        return owners[-1] if len(_conversations(owners)) == 1 else None

    def _owning(self, request: LineRequest, beginning: Beginning, owners: list[Line]) -> list[Line]:
        for line in (self._of_ids(request), self._of_session(request)):
            named = [] if line is None else _of(line.conversation, owners)
            if named:
                return named
        answer = self._digests.of_answer_after(request.conversation, beginning)
        given = self._known(self._prompts.owners(beginning.digest, answer))
        # Of those that got this very answer, one that has not been continued is continued now.
        return [line for line in given if line.tip == beginning.digest] or given

    def _of_ids(self, request: LineRequest) -> Line | None:
        """Find the line whose answer gave the newest known id. An id that several conversations
        got, as from models that number their calls, is no evidence."""
        for name in reversed(request.ids()[-IDS:]):
            owners = self._known(self._ids.owners(self._digests.of_text(request.scope, name)))
            if len(_conversations(owners)) == 1:
                return owners[-1]
        return None

    def _of_continued(self, request: LineRequest) -> Line | None:
        """Find the line of the answer that the request continues without repeating the prompt."""
        if request.continues is None:
            return None
        named = self._digests.of_text(request.scope, request.continues)
        owners = self._known(self._ids.owners(named))
        return owners[-1] if owners else None

    def _of_session(self, request: LineRequest) -> Line | None:
        if request.session is None:
            return None
        owners = self._known(self._sessions.owners(self._session(request)))
        return owners[-1] if owners else None

    def session_digest(self, named: str) -> str:
        """Return the logged digest of a session that a client named: 32 hexadecimal digits."""
        return self._digests.of_text(("session",), named).hex()

    def _session(self, request: LineRequest) -> Digest:
        return self._digests.of_text((*request.scope, "session"), request.session or "")

    def _joined(
        self, request: LineRequest, whole: Beginning, line: Line, known: Beginning, now: float
    ) -> Place:
        """Place a request in the line that it extends, or in a new one with the same beginning."""
        grows = known is not whole and line.tip == known.digest
        own = line if grows else _new(request, line.conversation, whole, now)
        if not grows:
            line.branched(own, known.characters)
        return Place(
            line=own,
            joined=Joined.PREFIX,
            turn=own.requests + 1,
            prefix=known.characters,
            characters=whole.characters,
            prompt=whole.digest,
            scope=request.scope,
            parent=None if grows else line,
            is_again=known is whole,
        )

    def _apart(self, request: LineRequest, chain: Chain, now: float) -> Place:
        """Place a request in a new line without a warm cache, in a known or a new conversation."""
        by_id = self._of_ids(request)
        parent, whole = by_id or self._of_session(request), chain.whole
        joined = Joined.ID if by_id else Joined.SESSION if parent else Joined.NEW
        name = request.request_id if parent is None else parent.conversation
        return Place(
            line=_new(request, name, whole, now),
            joined=joined,
            turn=1,
            prefix=0,
            characters=whole.characters,
            prompt=whole.digest,
            scope=request.scope,
            parent=by_id,
            has_answers=chain.longest is not None or request.continues is not None,
        )

    def _keep(self, line: Line, prompt: Digest, now: float) -> None:
        line.tip, line.used_at, line.is_answered = prompt, now, False
        line.requests += 1
        self._lines[line.name] = line
        self._lines.move_to_end(line.name)
        self._prompts.add(prompt, line)
        if len(self._lines) > self._most:
            self._forget(next(iter(self._lines.values())))

    def _sweep(self, now: float) -> None:
        for _ in range(SWEPT):
            oldest = next(iter(self._lines.values()), None)
            if oldest is None or now - oldest.used_at <= UNUSED_SECONDS:
                return
            self._forget(oldest)

    def _forget(self, line: Line) -> None:
        del self._lines[line.name]
        self._forgotten(line)

    def _known(self, owners: Iterable[Line]) -> list[Line]:
        """Keep those that are not forgotten, the newest last."""
        return [line for line in owners if self._lines.get(line.name) is line]


def _grown(request: LineRequest, added: Beginning, line: Line) -> Place:
    """Place a request that sends only its addition to a line."""
    return Place(
        line=line,
        joined=Joined.ID,
        turn=line.requests + 1,
        prefix=line.characters,
        characters=line.characters + added.characters,
        prompt=added.digest,
        scope=request.scope,
    )


def _learn_warm(line: Line, logged: LoggedTurn) -> None:
    """Learn the state of the cache if it is reported, and this worker does not know it better."""
    if logged.warm is None or logged.deployment in line.warm:
        return
    line.prompt_tokens, line.characters = logged.prompt_tokens, logged.characters
    _keep_warm(line, logged.deployment, logged.warm)


def _keep_warm(line: Line, deployment: str, warm: Warm) -> None:
    """Record a deployment's cache as the newest, and drop the oldest beyond ``WARM``."""
    line.warm.pop(deployment, None)
    line.warm[deployment] = warm
    if len(line.warm) > WARM:
        del line.warm[next(iter(line.warm))]


def _new(request: LineRequest, conversation: str, whole: Beginning, now: float) -> Line:
    return Line(request.request_id, conversation, whole.digest, now)


def _conversations(lines: Iterable[Line]) -> set[str]:
    return {line.conversation for line in lines}


def _of(conversation: str, lines: Iterable[Line]) -> list[Line]:
    return [line for line in lines if line.conversation == conversation]
