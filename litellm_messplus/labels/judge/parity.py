"""Comparison of the answers to a request with the largest candidate's: whether they are the same,
and else which one a judge prefers."""

import json
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from litellm_messplus.labels.agreement import Agreement, PositionBias, matching_weights
from litellm_messplus.labels.judge.asking import Asking, Outcome, ShownAnswer, ToGrade
from litellm_messplus.labels.judge.prompts import PREFERENCE, comparison, preferred
from litellm_messplus.labels.source import Answer, Finding, ReportFinding, ToolCall
from litellm_messplus.runtime.counters import Counters, logger
from litellm_messplus.runtime.vocabulary import LabelKind, Preferred

# Whether two answers are the same, so that no judge need compare them.

LONGEST = 50_000
"""Most characters of an answer that is normalised: longer ones must be identical."""
SHORT = 80
"""Most characters of a one-line answer whose case and marks at the ends are ignored."""
MARKS = " \t\"'`*_.,;:!?()[]"
FENCE = "```"


def are_same(first: Answer, second: Answer) -> bool:
    """Tell whether both have the same text or JSON, and call the same tools with the same
    arguments. Answers with other parts are never the same."""
    if first.others or second.others or (first.refusal is None) != (second.refusal is None):
        return False
    if [*map(_call, first.tool_calls)] != [*map(_call, second.tool_calls)]:
        return False
    return _same_text(first.text, second.text)


def normalised(text: str) -> str:
    """Normalise Unicode form and drop spaces at the ends of lines; for a single short line also
    drop case and the marks around it."""
    lines = [line.rstrip() for line in unicodedata.normalize("NFKC", text).strip().splitlines()]
    if len(lines) == 1 and len(lines[0]) <= SHORT:
        return " ".join(lines[0].casefold().split()).strip(MARKS)
    return "\n".join(lines)


def _same_text(first: str, second: str) -> bool:
    if first == second:
        return True
    if max(len(first), len(second)) > LONGEST:
        return False
    words = normalised(first)
    if words and words == normalised(second):
        return True
    found = _json(first)
    return found is not None and found == _json(second)


def _call(call: ToolCall) -> tuple[str, str]:
    return call.name, _json(call.arguments[:LONGEST]) or call.arguments


def _json(text: str) -> str | None:
    """Write the object or list in canonical form, if the whole text is one, fenced or not."""
    bare = text.strip()
    if bare.startswith(FENCE) and bare.endswith(FENCE):
        bare = bare.removesuffix(FENCE).partition("\n")[2]
    if not bare.lstrip().startswith(("{", "[")):
        return None
    try:
        found: Any = json.loads(bare)
    except (ValueError, RecursionError):
        return None
    return json.dumps(found, sort_keys=True)


# Otherwise a judge compares them.


SOURCE = "parity"
MOST_BIAS = 0.3
"""Largest bias of the judge towards either place, as a difference of shares; if it is larger with
95 % confidence, its labels stop counting. A judge at 0.3 names one answer in two thirds of the
pairs that it should call equal."""
SCORES = {Preferred.FIRST: 1.0, Preferred.SECOND: -1.0, Preferred.NEITHER: 0.0}
"""Score of the first answer shown, by preference."""


@dataclass(eq=False, repr=False)
class Comparer:
    """Comparer that labels an answer satisfactory if it is at least as good as the largest's.

    If both are the same, no judge is called. Else a judge compares the two blind, in both orders,
    so that its preference for a place cancels out. The largest's own answer satisfies by
    definition. ``weight`` is that of the findings, 0 if the judge agrees too little with users;
    findings also weigh 0 while it prefers a place by more than `MOST_BIAS`.
    """

    largest: str
    asking: Asking
    report: ReportFinding
    counters: Counters

    def __post_init__(self) -> None:
        self.weight = 1.0
        self._position = PositionBias()
        self._is_fair = True
        self._weights = 1.0, 1.0

    def learn(self, position: PositionBias, agreement: Agreement) -> None:
        """Learn from the log which places the judge preferred, and how users labelled the answers
        that it compared."""
        self._weights = matching_weights(agreement)
        self._take(position)

    def at_once(self, to_grade: ToGrade) -> ToGrade | None:
        """Label the largest's answer and those equal to it; return the others, with it."""
        reference = self._reference(to_grade)
        if reference is None:
            self.counters.add("parity_without_largest")
            return None
        self._find(to_grade, reference, 1.0)
        rest = []
        for shown in self._others(to_grade):
            if are_same(shown.answer, reference.answer):
                self._find(to_grade, shown, 1.0)
            else:
                rest.append(shown)
        return replace(to_grade, answers=(reference, *rest)) if rest else None

    def cost(self, to_grade: ToGrade) -> float:
        """Expect the cost of both orders of each answer and the reference, in dollars."""
        reference = self._reference(to_grade)
        if reference is None:
            return 0.0
        prompts = (
            comparison(to_grade.request, shown.answer, reference.answer)
            for shown in self._others(to_grade)
        )
        return sum(2.0 * (self.asking.cost.of_messages(each) or 0.0) for each in prompts)

    async def grade(self, to_grade: ToGrade) -> Outcome:
        """Call the judge twice for each answer, once per order; a failure ends it without labels
        for the rest."""
        reference = self._reference(to_grade)
        if reference is None:
            return Outcome.ANSWERED
        for shown in self._others(to_grade):
            outcome = await self._compare(to_grade, shown, reference)
            if outcome is not Outcome.ANSWERED:
                return outcome
        return Outcome.ANSWERED

    async def _compare(
        self, to_grade: ToGrade, shown: ShownAnswer, reference: ShownAnswer
    ) -> Outcome:
        score = 0.0
        for pair, sign in (((shown, reference), 1.0), ((reference, shown), -1.0)):
            prompt = comparison(to_grade.request, pair[0].answer, pair[1].answer)
            found = await self.asking.put(to_grade, prompt, PREFERENCE, 2, preferred)
            if isinstance(found, Outcome):
                return found
            self._take(self._position.after(found))
            score += sign * SCORES[found]
        self._find(to_grade, shown, float(score >= 0.0))
        return Outcome.ANSWERED

    def _find(self, to_grade: ToGrade, shown: ShownAnswer, value: float) -> None:
        unsatisfied, satisfied = self._weights
        weight = self.weight * (satisfied if value else unsatisfied) if self._is_fair else 0.0
        self.report(
            Finding(
                call_id=shown.call_id,
                request_id=to_grade.request.request_id,
                kind=LabelKind.JUDGE,
                source=SOURCE,
                value=value,
                weight=weight,
                probability=to_grade.request.label_probability,
            )
        )

    def _reference(self, to_grade: ToGrade) -> ShownAnswer | None:
        """Find the largest candidate's answer, if there is one."""
        return next((each for each in to_grade.answers if each.candidate == self.largest), None)

    def _others(self, to_grade: ToGrade) -> Iterator[ShownAnswer]:
        return (each for each in to_grade.answers if each.candidate != self.largest)

    def _take(self, position: PositionBias) -> None:
        self._position = position
        is_fair = position.may_be_within(MOST_BIAS)
        if is_fair != self._is_fair:
            logger.warning(
                "the labels of the judge %s %s: it prefers the answer shown first by %s, and may by"
                " %g",
                self.asking.model,
                "count again" if is_fair else "stop counting",
                position,
                MOST_BIAS,
            )
        self._is_fair = is_fair
