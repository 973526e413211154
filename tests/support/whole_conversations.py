"""Logged conversations of which the promise counts each as one."""

from litellm_messplus.records import LabelRecord, Record, RequestRecord, new_id
from litellm_messplus.routing.decision import Reason
from tests.support.builders import LARGE, SMALL, label, request, served_call


def begun(name: str = "c", chosen: str = SMALL) -> RequestRecord:
    return request(name, conversation=name, line=name, turn=1, chosen=chosen)


def turn(name: str, chosen: str = SMALL, first: str = "c") -> RequestRecord:
    return request(
        name,
        conversation=first,
        line=first,
        turn=2,
        chosen=chosen,
        counted_with=first,
        reason=Reason.HELD,
    )


def verdict(value: float = 1.0, first: str = "c") -> LabelRecord:
    return label(first, value, label_id=new_id())


def two_conversations() -> list[Record]:
    """One is judged twice and changes its model between, the other's verdict comes mid-way."""
    return [
        *(begun(), served_call("c", candidate=SMALL), begun("d"), turn("t1")),
        *(verdict(0.0), served_call("t1", candidate=SMALL), turn("t2", LARGE), verdict(1.0)),
        *(served_call("d"), verdict(1.0, "d"), turn("t3", LARGE, "d"), verdict(0.0, "d")),
        served_call("t3", candidate=LARGE),
    ]
