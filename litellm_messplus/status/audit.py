"""What the judge's audit says of who answers, for the report."""

from litellm_messplus.label_kind import LabelKind
from litellm_messplus.labels.response_bias import Audit, corrected_rate, estimate
from litellm_messplus.status.label_report import ResponseBias
from litellm_messplus.status.sources import Sources


def response_bias(audit: Audit | None, sources: Sources) -> ResponseBias | None:
    """None where nothing was graded; ``sources`` have all that users said."""
    if audit is None:
        return None
    feedback = next((each for each in sources if each.kind is LabelKind.FEEDBACK), None)
    found = estimate(audit)
    return ResponseBias(
        graded=audit.graded,
        answered=audit.answered.calls,
        ratio=found.ratio,
        low=found.low,
        high=found.high,
        is_corrected=found.is_corrected,
        is_thin=found.is_thin,
        feedback_rate=feedback.mean if feedback else None,
        corrected_rate=(
            corrected_rate(feedback.mean, feedback.mean_square, found.ratio) if feedback else None
        ),
    )
