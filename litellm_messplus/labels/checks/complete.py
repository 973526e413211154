"""Is the answer all there? A check that finds fault, and never praises."""

from litellm_messplus.labels.answered_call import Answer, AnsweredCall, Finish
from litellm_messplus.labels.checks.check import Score


class CompleteCheck:
    """An error that the user saw, an empty answer, one that was cut off or refused."""

    name = "complete"

    async def check(self, call: AnsweredCall) -> Score | None:
        if call.answer is None:  # nobody misses the answer of a failed exploration
            return Score(0.0, "the user got an error") if call.is_served else None
        fault = _fault(call.answer)
        return Score(0.0, fault) if fault else None


def _fault(answer: Answer) -> str | None:
    if answer.finish is Finish.CONTENT_FILTER:
        return "stopped by a content filter"
    if answer.refusal is not None:
        return "refused"
    if answer.finish is Finish.LENGTH:
        return "cut off by length"
    if not (answer.text.strip() or answer.tool_calls or answer.others):
        return "empty"
    return None
