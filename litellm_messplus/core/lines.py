"""Lines and conversations, recognised from earlier prompts without storing their text.

A prompt belongs to the line whose prompt it begins with: the whole prompt of an earlier request of
the same zoo and key. If such prompts belong to several conversations (many clients may ask the same
first question), the ids in it, its session, or the earlier answer must decide between them; if they
do not, it begins a conversation of its own: none is joined falsely.

A line also goes on where its beginning has changed, if only the system prompt has (a date, a
client's header), or if the prompt holds what the newest answer called (a client has cleared old
results). Other caches than those of a line are never taken to be warm.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from litellm_messplus.core.digests import Beginning, Chain, Digest, Digests
from litellm_messplus.core.line import Line, LineRequest, LoggedTurn, Place, Warm

# The owners of digests, in bounded memory: the oldest are forgotten.

POINTS = 100_000
"""Number of digests remembered, the newest: 3,000 agents' sessions of 30 requests."""
OWNERS = 8
"""Owners of one digest, the newest: so many may send the same prompt without being mixed up."""

Owner = TypeVar("Owner")


class Points(Generic[Owner]):
    """The owners of at most ``most`` digests, ``OWNERS`` each, with the answer that each got there;
    the oldest digests are forgotten."""

    def __init__(self, most: int = POINTS) -> None:
        self._most = most
        self._points: dict[Digest, tuple[tuple[Owner, Digest | None], ...]] = {}
        self._order: deque[Digest] = deque()

    def add(self, digest: Digest, owner: Owner) -> None:
        """Remember an owner, and forget the oldest digest if there are too many."""
        points = self._points.get(digest, ())
        if not points:
            self._order.append(digest)
        elif points[-1][0] is owner:
            return
        self._points[digest] = (*points, (owner, None))[-OWNERS:]
        if len(self._order) > self._most:
            del self._points[self._order.popleft()]

    def answered(self, digest: Digest, owner: Owner, answer: Digest) -> None:
        """Remember the answer that an owner got there; do nothing if the digest is forgotten."""
        if points := self._points.get(digest):
            self._points[digest] = tuple(
                [(each, answer if each is owner else got) for each, got in points]
            )

    def owners(self, digest: Digest, answer: Digest | None = None) -> list[Owner]:
        """List the owners, the newest last; if an answer is given, only those that got it."""
        points = self._points.get(digest, ())
        return [each for each, got in points if answer is None or got == answer]


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
    """The lines of all conversations. ``key`` is secret and that of the database; ``now`` is in
    seconds, of any monotonic clock. ``forgotten`` is called with each line that is no longer
    continued."""

    def __init__(
        self,
        key: bytes,
        *,
        lines: int = LINES,
        points: int = POINTS,
        forgotten: Callable[[Line], None] = lambda line: None,
    ) -> None:
        self._forgotten = forgotten
        self._digests = Digests(key)
        self._most = lines
        self._lines: OrderedDict[str, Line] = OrderedDict()
        self._prompts: Points[Line] = Points(points)
        self._words: Points[Line] = Points(lines)
        self._ids: Points[Line] = Points(points)
        self._sessions: Points[Line] = Points(lines)

    def find(self, request: LineRequest, now: float) -> Place:
        """Find the place of a request, and remember its prompt."""
        self._sweep(now)
        chain = self._digests.chain(request.scope, request.conversation)
        whole, own, parent = chain.whole, self._of_continued(request), None
        line, known = self._by_prefix(request, chain) or (None, whole)
        attached = request.conversation.images + request.conversation.attachments
        if own is not None:  # it sends what it adds alone
            whole = replace(whole, characters=own.characters + whole.characters)
            attached += own.attached or 0
        elif line is not None and known is not whole and line.tip == known.digest:
            own = line
        elif (own := self._reworded(request, chain)) is None:
            by_id = self._of_ids(request)
            if by_id is not None and self._answers(request, by_id):
                by_id.changed(0 if line is None else known.characters)
                own = by_id
            parent = line or by_id
        if own is None:
            of = parent or self._of_session(request)
            name = request.request_id if of is None else of.conversation
            own = Line(request.request_id, name, whole.digest, now)
            if line is not None:
                line.branched(own, known.characters)
        place = Place(
            line=own,
            turn=own.requests + 1,
            characters=whole.characters,
            prompt=whole.digest,
            scope=request.scope,
            parent=None if own.requests else parent,
            is_again=line is not None and known is whole,
            has_answers=line is None and (chain.longest or request.continues) is not None,
            attached=attached,
        )
        self._keep(place.line, whole.digest, now, whole.words)
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
        given = [self._digests.of_text(place.scope, name) for name in ids[-IDS:]]
        for each in given:
            self._ids.add(each, place.line)
        if given and place.line.tip == place.prompt:
            place.line.gave = given[0]

    def learn(self, logged: LoggedTurn, now: float) -> None:
        """Learn the state of a line from the log; a line that is known as far is left as it is."""
        line = self._lines.get(logged.line)
        if line is None:
            line = Line(logged.line, logged.conversation, logged.prompt, now)
        warm = None if logged.deployment in line.warm else logged.warm
        if line.requests < logged.turn:
            line.requests = logged.turn - 1
            self._keep(line, logged.prompt, now)
            self.called(line, logged.candidate, logged.deployment)
            line.is_answered = True
        elif line.tip != logged.prompt or warm is None:
            return
        line.prompt_tokens, line.characters = logged.prompt_tokens, logged.characters
        line.attached = None
        if warm is not None:
            _keep_warm(line, logged.deployment, warm)

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
        here = _conversations(self._known(self._prompts.owners(whole.digest)))
        ends = self._known(self._prompts.owners(before.digest))
        rivals = _conversations(line for line in ends if line.tip == before.digest)
        return bool(here) and rivals <= here

    def _one_of(self, request: LineRequest, beginning: Beginning) -> Line | None:
        """Find the line of this prompt among those that have sent this beginning."""
        owners = self._known(self._prompts.owners(beginning.digest))
        return self._only(request, beginning, owners, beginning.digest)

    def _reworded(self, request: LineRequest, chain: Chain) -> Line | None:
        """Find the line that this prompt goes on from, after another system prompt."""
        longest = chain.longest
        if longest is None or self._known(self._prompts.owners(longest.digest)):
            return None
        owners = self._known(self._words.owners(longest.words))
        owners = [line for line in owners if line.words == longest.words]
        return self._only(request, longest, owners, None)

    def _only(
        self, request: LineRequest, begun: Beginning, owners: list[Line], prompt: Digest | None
    ) -> Line | None:
        """Find the newest if all are of one conversation, else that of which the ids, the session
        or the answer to that prompt tell. Without the prompt, a first question says too little."""
        before = request.conversation.turns[: begun.turns]
        is_weak = prompt is None and all(turn.role != "assistant" for turn in before)
        if owners and (is_weak or len(_conversations(owners)) > 1):
            for named in (self._of_ids(request), self._of_session(request)):
                name = None if named is None else named.conversation
                same = [line for line in owners if line.conversation == name]
                if same:
                    return same[-1]
            answer = self._digests.of_answer_after(request.conversation, begun)
            got = self._prompts.owners
            owners = [line for line in owners if line in got(prompt or line.tip, answer)]
            # Of those that got this very answer, one that was not continued is continued now.
            owners = [line for line in owners if line.tip == begun.digest] or owners
        return owners[-1] if len(_conversations(owners)) == 1 else None

    def _answers(self, request: LineRequest, line: Line) -> bool:
        """Tell whether a prompt holds what the newest answer of a line called: it goes on from
        there, though the client has left out or summed up what was before."""
        held = [self._digests.of_text(request.scope, name) for name in request.ids[-IDS:]]
        return line.gave in held

    def _of_ids(self, request: LineRequest) -> Line | None:
        """Find the line whose answer gave the newest known id. An id that several conversations
        got, as from models that number their calls, is no evidence."""
        for name in reversed(request.ids[-IDS:]):
            owners = self._known(self._ids.owners(self._digests.of_text(request.scope, name)))
            if len(_conversations(owners)) == 1:
                return owners[-1]
        return None

    def _of_continued(self, request: LineRequest) -> Line | None:
        """Find the line of the answer that the request continues without repeating the prompt."""
        if request.continues is None:
            return None
        return self._newest(self._ids, self._digests.of_text(request.scope, request.continues))

    def _of_session(self, request: LineRequest) -> Line | None:
        if request.session is None:
            return None
        return self._newest(self._sessions, self._session(request))

    def _newest(self, points: Points[Line], digest: Digest) -> Line | None:
        return next(reversed(self._known(points.owners(digest))), None)

    def session_digest(self, named: str) -> str:
        """Return the logged digest of a session that a client named: 32 hexadecimal digits."""
        return self._digests.of_text(("session",), named).hex()

    def _session(self, request: LineRequest) -> Digest:
        return self._digests.of_text((*request.scope, "session"), request.session or "")

    def _keep(self, line: Line, prompt: Digest, now: float, words: Digest | None = None) -> None:
        line.tip, line.used_at, line.is_answered = prompt, now, False
        line.words, line.gave = words, None
        line.requests += 1
        if words is not None:
            self._words.add(words, line)
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


def _keep_warm(line: Line, deployment: str, warm: Warm) -> None:
    """Record a deployment's cache as the newest, and drop the oldest beyond ``WARM``."""
    line.warm.pop(deployment, None)
    line.warm[deployment] = warm
    if len(line.warm) > WARM:
        del line.warm[next(iter(line.warm))]


def _conversations(lines: Iterable[Line]) -> set[str]:
    return {line.conversation for line in lines}
