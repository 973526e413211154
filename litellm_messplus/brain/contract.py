"""What a worker asks of the brain, and the brain of a worker: each method is a message.

A coroutine is answered; a plain method is sent without waiting. All that passes is plain data.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from litellm_messplus.brain.messages import (
    Admission,
    Asked,
    Asking,
    Author,
    Caller,
    Ended,
    Order,
    Shown,
    ZooNow,
)
from litellm_messplus.core.answer import AnswerReading, AnswerSurface
from litellm_messplus.costs.price import Price
from litellm_messplus.labels.judge.asking import Reply
from litellm_messplus.labels.judge.prompts import Message


class Road(Protocol):
    """The road of a request through the brain: each step after the first names it by its id."""

    async def begin(self, asked: Asked) -> str | None:
        """Draw the arm of a request, and find the promise that it counts towards. Return what
        serves it as before the router; None if it is to be decided.

        Raises RefusedError for a level that the zoo does not have."""

    async def route(self, asked: Asked, admission: Admission, spent: float) -> Order | str:
        """Begin and decide a request in one step; return what serves it as before, if it is not to
        be decided. Raises as `begin`."""

    async def decide(self, request_id: str, admission: Admission, spent: float) -> Order:
        """Decide and log a request that waits for it, on which the worker has ``spent`` so many
        seconds."""

    async def pass_by(self, request_id: str, serves: str) -> Order:
        """Note a request that is served as before. It is logged without a decision, at once or, if
        it is to be decided in shadow too, when its call ends before."""

    async def shadow(self, request_id: str, admission: Admission, spent: float) -> Order | None:
        """Decide and log a request that is served as before; None if its call has ended meanwhile,
        since it is logged without a decision then."""

    def give_up(self, request_id: str) -> None:
        """Log a request without a decision, if it has none."""

    def called(self, request_id: str, deployment: str | None, response_id: str | None) -> None:
        """Note which deployment answers, and the id of the answer, before it is logged: the next
        request of the conversation may come first, and feedback too."""

    def abandon(self, request_id: str) -> None:
        """End a request whose decision came too late for its worker, which served it without."""

    async def read(self, request_id: str, looks: AnswerSurface) -> AnswerReading | None:
        """Read the answer of the chosen candidate, and decide whether another one is called; None
        if it was read before."""

    def ended(self, ended: Ended) -> None:
        """Log an ended call, and show it to its conversation and to the sources of labels."""

    def left_out(self, request_id: str) -> None:
        """Note that an unseen call of a request is not made."""

    async def author_of(self, zoo: str, response_id: str | None) -> Author | None:
        """Find the author of the zoo's answer with that id, which LiteLLM's cache repeats; None if
        no call has it.

        Raises TimeoutError or SQLAlchemyError if the log cannot be read."""

    def shown(
        self, worker: str, zoo: str, prices: dict[str, Price], replicas: dict[str, str]
    ) -> None:
        """Take what the router of a worker shows of a zoo: the known prices of its candidates, and
        the candidate of each deployment."""

    def counted(self, worker: str, counts: dict[str, float]) -> None:
        """Take what a worker has counted since its start."""

    async def answer(self, worker: str, asking: Asking) -> Shown:
        """Answer a client's request to a route under `/messplus`, which that worker forwards."""


class Hands(Protocol):
    """What the brain asks of a worker, which alone has LiteLLM."""

    async def authenticate(self, headers: list[tuple[bytes, bytes]]) -> Caller:
        """Find the caller with these headers. Raises HTTPException as LiteLLM refuses one."""

    async def judge(
        self,
        model: str,
        candidate: str | None,
        messages: Sequence[Message],
        schema: Mapping[str, Any],
        timeout_seconds: float,
    ) -> Reply:
        """Ask a model group, or one candidate of a zoo, to grade. Raises JudgeRefusedError, and the
        errors of LiteLLM."""

    async def judge_price(self, model: str, candidate: str | None) -> Price | None:
        """Find what it costs, in dollars; None if that is not known."""

    async def decoded(self, given: str) -> str:
        """Decode the id of an answer that a client received to the one in the log."""

    def know(self, zoos: dict[str, ZooNow]) -> None:
        """Take what has become of the zoos."""

    def written(self, ended: int) -> None:
        """Note that so many calls that ended since this worker connected are in the log."""
