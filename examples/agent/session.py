"""One client's work through the proxy: the agent does tasks, each is judged once, and what they
cost is looked up."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import httpx
from openai import OpenAI

from examples.agent.loop import LONGEST_REPLY, Message, attempt
from examples.agent.tasks import Task, is_solved
from examples.agent.tools import TOOLS
from examples.tiny_zoo.demo.session import look_up
from litellm_messplus.core.hold import Hold


@dataclass
class Work:
    """The requests for one task: ``completions`` are OpenAI's ids of all, the last of which is the
    answer's; ``routed`` our ids of those that the plugin decided, and ``models`` who served
    them."""

    is_solved: bool = False
    completions: list[str] = field(default_factory=list)
    routed: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)

    @property
    def switches(self) -> int:
        """The times that another model took over, each of them inside the tool loop."""
        return sum(before != after for before, after in pairwise(self.models))


@dataclass(frozen=True, slots=True)
class Bill:
    """The requests for one task as the log has them; ``cost`` in dollars, unseen calls included.

    ``rescues`` are the requests at which a better model took over, because the one that was held
    got no further.
    """

    cost: float
    prompt_tokens: int
    cached_tokens: int
    rescues: int


class Session:
    """A client that works on tasks with the models of one zoo.

    ``client`` asks the proxy's models, ``messplus`` the plugin's own routes.
    """

    def __init__(self, client: OpenAI, messplus: httpx.Client, zoo: str) -> None:
        self._client = client
        self._messplus = messplus
        self._zoo = zoo

    def work(self, task: Task) -> Work:
        """Let the agent work on a task, and say once whether it is solved, of its last answer."""
        work = Work()
        answer = attempt(task, lambda messages: self._ask(messages, work))
        work.is_solved = is_solved(task, answer)
        verdict = {"id": work.completions[-1], "satisfied": work.is_solved}
        self._messplus.post("/feedback", json=verdict).raise_for_status()
        return work

    def _ask(self, messages: list[Message], work: Work) -> Message:
        body: dict[str, Any] = {
            "model": self._zoo,
            "messages": messages,
            "tools": TOOLS,
            "max_tokens": LONGEST_REPLY,
        }
        answer = self._client.chat.completions.with_raw_response.create(**body)
        completion = answer.parse()
        work.completions.append(completion.id)
        if "x-messplus-request-id" in answer.headers:
            work.routed.append(answer.headers["x-messplus-request-id"])
            work.models.append(answer.headers["x-messplus-model"])
        message: Message = completion.choices[0].message.model_dump(exclude_none=True)
        return message

    def bill(self, work: Work) -> Bill:
        """Add up what the log says of a task's calls, once they have all ended."""
        found = [look_up(self._messplus, each) for each in work.routed]
        calls = [call for outcome in found for call in outcome["calls"]]
        return Bill(
            cost=sum(call["cost"] or 0.0 for call in calls),
            prompt_tokens=sum(call["prompt_tokens"] or 0 for call in calls),
            cached_tokens=sum(call["cached_tokens"] or 0 for call in calls),
            rescues=sum(outcome["hold"] == Hold.TROUBLE for outcome in found),
        )
