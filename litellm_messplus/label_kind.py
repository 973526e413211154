"""Who judges: the kinds of label sources, and whose word counts first unless told otherwise."""

from enum import StrEnum


class LabelKind(StrEnum):
    """The name of it in settings, in the log and in every report."""

    FEEDBACK = "feedback"
    CHECK = "check"
    JUDGE = "judge"
    IMPLICIT = "implicit"


PRECEDENCE = (LabelKind.FEEDBACK, LabelKind.CHECK, LabelKind.JUDGE, LabelKind.IMPLICIT)
"""What a user says beats what a program finds, which beats what a model thinks, which beats what
is read from behaviour."""
