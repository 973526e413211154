"""The part of a request's row that tells of the switch-over."""

from litellm_messplus.rows import column, public, record
from litellm_messplus.switching.modes import Arm


@record
class Trial:
    """The arm of a request, and of one that was served as before, the router's choice."""

    arm: Arm = public(
        "`routed`, or `before`: what served before the zoo was switched on served it, and the "
        "router decided aside.",
        size=16,
        earlier=Arm.ROUTED,
        default=Arm.ROUTED,
    )
    would_choose: str | None = public(
        "Served as before: the candidate that the router would have chosen; NULL where it was "
        "not worked out in time, and of a routed request.",
        default=None,
    )
    would_cost: float | None = public(
        "Served as before: what that candidate, and the calls beside it, were expected to cost.",
        default=None,
    )
    sample_probability: float | None = public(
        "Served as before: the probability of the draw that had another model called unseen; "
        "NULL where none was called.",
        default=None,
    )
    conversation_draw: float | None = column(
        "The draw of its conversation, from 0 to 1: below the share of a canary it is routed. "
        "NULL under `mode: on`.",
        default=None,
    )

    def drawn(self, *, is_served: bool) -> float | None:
        """Return the probability with which an answer was asked for; None of one that always is."""
        return self.sample_probability if self.arm is Arm.BEFORE and not is_served else None

    def is_of_choice(self, candidate: str | None, *, chosen: str, is_served: bool) -> bool | None:
        """Tell of a request that was served as before whether an answer, of the candidate, is one
        of the model that the router would have chosen; None of a routed request. Where that model
        was called unseen, the served answer does not count too."""
        if self.arm is not Arm.BEFORE:
            return None
        author = candidate or (chosen if is_served else None)
        if author is None or author != self.would_choose:
            return False
        return not is_served or self.sample_probability is None or author == chosen


ROUTED = Trial()
