"""A client that asks real tasks, checks the answers, and says what it thinks of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx

from examples.tiny_zoo.tasks import Task, generate, is_satisfactory
from tests.vllm.operator_config import ZOO

MANY = 10_000


@dataclass
class Client:
    """Of the proxy; every task is asked once."""

    http: httpx.Client
    tasks: Iterator[Task] = field(default_factory=lambda: generate(MANY, seed=0))

    def ask(self) -> httpx.Response:
        """One task, and feedback on its answer where there is one."""
        task = next(self.tasks)
        answer = self.http.post("/v1/chat/completions", json=question(task.prompt))
        if answer.status_code == 200:
            reply = answer.json()["choices"][0]["message"]["content"] or ""
            self.judge(answer.json()["id"], is_satisfactory(task, reply))
        return answer

    def judge(self, identity: str, satisfied: bool) -> None:
        verdict = {"id": identity, "satisfied": satisfied}
        self.http.post("/messplus/feedback", json=verdict).raise_for_status()


def question(prompt: str, **body: object) -> dict[str, object]:
    """The body of a chat completion."""
    return {"model": ZOO, "messages": [{"role": "user", "content": prompt}], **body}


def served_by(answer: httpx.Response) -> str:
    """The name under which vLLM serves the model that answered."""
    return answer.headers["x-messplus-model"].removeprefix("hosted_vllm/")
