"""One client's session with the proxy: ask, check, say what a user would, look the outcome up."""

import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httpx
from openai import OpenAI

from litellm_messplus.demo.labelling import Labelling
from litellm_messplus.demo.tasks import Task, is_satisfactory

SETTLE_SECONDS = 30.0
"""How long to wait for the calls of an exploration, which run in the background."""

Outcome = dict[str, Any]
"""What `GET /messplus/requests/{id}` shows."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that was answered; ``satisfied`` is the truth, whatever its labels say."""

    request_id: str
    satisfied: bool


@dataclass(frozen=True, slots=True)
class Reported:
    """What the proxy itself makes of the labels: how many requests have one, the share satisfied,
    and where the true one lies by it, at 95 %; and the unit that the zoo counts in.

    The shares are None without a label, and all is where the key is no administrator's.
    """

    labelled: int | None = None
    rate: float | None = None
    low: float | None = None
    high: float | None = None
    cost_unit: str | None = None


class Session:
    """Sends tasks, from any number of threads, and labels them as ``labelling`` says.

    ``client`` asks the proxy's models, ``messplus`` the plugin's own routes.
    """

    def __init__(
        self, client: OpenAI, messplus: httpx.Client, model: str, labelling: Labelling
    ) -> None:
        self._client = client
        self._messplus = messplus
        self._model = model
        self._labelling = labelling

    def send(self, number: int, task: Task) -> Sent | None:
        """Ask for one task, the ``number``-th, check the answer, and say what a user would say.

        None where the plugin did not decide in time, and LiteLLM's own choice answered.
        """
        answer = self._client.chat.completions.with_raw_response.create(
            model=self._model,
            messages=[{"role": "user", "content": task.prompt}],
            extra_body=self._metadata(task),
        )
        request_id = answer.headers.get("x-messplus-request-id")
        if request_id is None:
            return None
        completion = answer.parse()
        satisfied = is_satisfactory(task, completion.choices[0].message.content or "")
        crowd = self._labelling.crowd
        if crowd is not None and crowd.answers(number, satisfied):
            self._feedback(id=completion.id, satisfied=satisfied)
        is_exploration = answer.headers["x-messplus-exploration"] == "true"
        if is_exploration and self._labelling.labels_explorations:
            self._label_explorations(request_id, task)
        return Sent(request_id, satisfied)

    def look_up(self, request_id: str) -> Outcome:
        """The request as logged, once all its calls have ended or that takes too long."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            found = self._messplus.get(f"/requests/{request_id}").raise_for_status().json()
            expected = 1 + found["exploration_calls"]
            if len(found["calls"]) >= expected or time.monotonic() > deadline:
                return dict(found)
            time.sleep(0.02)

    def reported(self, like: Outcome, requests: int) -> Reported:
        """What the proxy reports of the newest ``requests`` under the same promise as ``like``.

        They are this session's where nobody else used the zoo meanwhile.
        """
        response = self._messplus.get("/status", params={"window": requests})
        if response.status_code == HTTPStatus.FORBIDDEN:
            return Reported()
        (level,) = (
            level
            for level in response.raise_for_status().json()["levels"]
            if all(level[key] == like[key] for key in ("zoo", "service_level"))
        )
        found = level["last"]["satisfaction"]
        return Reported(
            found["answered"], found["rate"], found["low"], found["high"], level["cost_unit"]
        )

    def _metadata(self, task: Task) -> dict[str, Any]:
        if not self._labelling.sends_reference:
            return {}
        return {"metadata": {"messplus_reference": task.answer}}

    def _label_explorations(self, request_id: str, task: Task) -> None:
        """The unseen answers are read back: the demo's proxy is asked to store them."""
        for call in self.look_up(request_id)["calls"]:
            if call["role"] == "exploration" and call["status"] == "success":
                satisfied = is_satisfactory(task, call["answer"] or "")
                self._feedback(id=request_id, call_id=call["call_id"], satisfied=satisfied)

    def _feedback(self, **body: Any) -> None:
        self._messplus.post("/feedback", json=body).raise_for_status()
