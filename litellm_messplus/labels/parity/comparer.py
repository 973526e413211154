"""Comparing the answers to a request with the largest candidate's."""

import logging
from collections.abc import Iterator
from dataclasses import replace

from litellm_messplus.labels.agreement import Agreement, matching_weights
from litellm_messplus.labels.judge.gathering import ShownAnswer, ToGrade
from litellm_messplus.labels.judge.grader import Asking, Outcome
from litellm_messplus.labels.parity.position import PositionBias
from litellm_messplus.labels.parity.prompt import SCHEMA, messages, preferred
from litellm_messplus.labels.parity.sameness import are_same
from litellm_messplus.labels.source import Finding, ReportFinding
from litellm_messplus.runtime import Counters
from litellm_messplus.vocabulary import LabelKind, Preferred

logger = logging.getLogger("litellm_messplus")

SOURCE = "parity"
MOST_BIAS = 0.3
"""By how much more often the judge may prefer the answer that it is shown first to the other, or
less, as a share; beyond, with 95 % confidence, its labels stop counting. A judge at 0.3 names one
answer in two thirds of the pairs that it should call equal."""
SCORES = {Preferred.FIRST: 1.0, Preferred.SECOND: -1.0, Preferred.NEITHER: 0.0}
"""What a preference says of the first answer shown."""


class Comparer:
    """An answer satisfies that is at least as good as the largest candidate's to the same request.

    Where both say the same, no judge is asked. Else one compares the two blind, in both orders, and
    what it says of the order cancels out. The largest's own answer satisfies by definition.
    ``weight`` is what the findings count, 0 where the judge agrees too little with users; and they
    count 0 while it prefers a place by more than `MOST_BIAS`.
    """

    def __init__(
        self,
        largest: str,
        asking: Asking,
        report: ReportFinding,
        counters: Counters,
    ) -> None:
        self.weight = 1.0
        self._largest = largest
        self._asking = asking
        self._report = report
        self._counters = counters
        self._position = PositionBias()
        self._is_fair = True
        self._weights = 1.0, 1.0

    def learn(self, position: PositionBias, agreement: Agreement) -> None:
        """Learn what the log says: which places the judge preferred, and what users said of the
        answers that it compared too."""
        self._weights = matching_weights(agreement)
        self._take(position)

    def at_once(self, request: ToGrade) -> ToGrade | None:
        """Label the largest's answer and those that say the same; the others are left, with it."""
        reference = self._reference(request)
        if reference is None:
            self._counters.add("parity_without_largest")
            return None
        self._find(request, reference, 1.0)
        rest = []
        for shown in self._others(request):
            if are_same(shown.answer, reference.answer):
                self._find(request, shown, 1.0)
            else:
                rest.append(shown)
        return replace(request, answers=(reference, *rest)) if rest else None

    def cost(self, request: ToGrade) -> float:
        """Expect the cost of both orders of each answer and the reference."""
        reference = self._reference(request)
        if reference is None:
            return 0.0
        prompts = (
            messages(request.asked, shown.answer, reference.answer)
            for shown in self._others(request)
        )
        return sum(2.0 * (self._asking.cost.of_messages(each) or 0.0) for each in prompts)

    async def grade(self, request: ToGrade) -> Outcome:
        """Ask twice about each answer, in either order; where that fails, of none that follows
        anything is said."""
        reference = self._reference(request)
        if reference is None:
            return Outcome.ANSWERED
        for shown in self._others(request):
            outcome = await self._compare(request, shown, reference)
            if outcome is not Outcome.ANSWERED:
                return outcome
        return Outcome.ANSWERED

    async def _compare(
        self, request: ToGrade, shown: ShownAnswer, reference: ShownAnswer
    ) -> Outcome:
        score = 0.0
        for pair, sign in (((shown, reference), 1.0), ((reference, shown), -1.0)):
            prompt = messages(request.asked, pair[0].answer, pair[1].answer)
            found = await self._asking.put(request, prompt, SCHEMA, 2, preferred)
            if isinstance(found, Outcome):
                return found
            self._take(self._position.after(found))
            score += sign * SCORES[found]
        self._find(request, shown, float(score >= 0.0))
        return Outcome.ANSWERED

    def _find(self, request: ToGrade, shown: ShownAnswer, value: float) -> None:
        unsatisfied, satisfied = self._weights
        weight = self.weight * (satisfied if value else unsatisfied) if self._is_fair else 0.0
        self._report(
            Finding(
                call_id=shown.call_id,
                request_id=request.asked.request_id,
                kind=LabelKind.JUDGE,
                source=SOURCE,
                value=value,
                weight=weight,
                probability=request.asked.label_probability,
            )
        )

    def _reference(self, request: ToGrade) -> ShownAnswer | None:
        """Find the largest candidate's answer, where it gave one."""
        return next((each for each in request.answers if each.candidate == self._largest), None)

    def _others(self, request: ToGrade) -> Iterator[ShownAnswer]:
        return (each for each in request.answers if each.candidate != self._largest)

    def _take(self, position: PositionBias) -> None:
        self._position = position
        is_fair = position.may_be_within(MOST_BIAS)
        if is_fair != self._is_fair:
            logger.warning(
                "the labels of the judge %s %s: it prefers the answer shown first by %s, and may by"
                " %g",
                self._asking.model,
                "count again" if is_fair else "stop counting",
                position,
                MOST_BIAS,
            )
        self._is_fair = is_fair
