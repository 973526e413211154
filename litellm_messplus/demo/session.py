"""One client's session with the proxy: ask, check, give feedback, and look the outcome up."""

import time
from typing import Any

import httpx
from openai import OpenAI

from litellm_messplus.demo.tasks import Task, is_satisfactory

SETTLE_SECONDS = 30.0
"""How long to wait for the calls of an exploration, which run in the background."""

Outcome = dict[str, Any]
"""What `GET /messplus/requests/{id}` shows."""


class Session:
    """Labels what it can check: the answer it got, and after an exploration the others' too."""

    def __init__(self, client: OpenAI, url: str, key: str, model: str) -> None:
        self._client = client
        self._model = model
        headers = {"authorization": f"Bearer {key}"}
        self._messplus = httpx.Client(base_url=f"{url}/messplus", headers=headers, timeout=30.0)
        self._request_ids: list[str] = []

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self._messplus.close()

    def send(self, task: Task) -> None:
        """Ask for one task, check the answer, and say whether it satisfied."""
        answer = self._client.chat.completions.with_raw_response.create(
            model=self._model, messages=[{"role": "user", "content": task.prompt}]
        )
        completion = answer.parse()
        request_id = answer.headers["x-messplus-request-id"]
        self._request_ids.append(request_id)
        reply = completion.choices[0].message.content or ""
        self._feedback(id=completion.id, satisfied=is_satisfactory(task, reply))
        if answer.headers["x-messplus-exploration"] == "true":
            self._label_explorations(request_id, task)

    def outcomes(self) -> list[Outcome]:
        """Every request of the session as logged, in order."""
        return [self._settled(request_id) for request_id in self._request_ids]

    def _label_explorations(self, request_id: str, task: Task) -> None:
        """The unseen answers are read back: the demo's proxy is asked to store them."""
        for call in self._settled(request_id)["calls"]:
            if call["role"] == "exploration" and call["status"] == "success":
                satisfied = is_satisfactory(task, call["answer"] or "")
                self._feedback(id=request_id, call_id=call["call_id"], satisfied=satisfied)

    def _settled(self, request_id: str) -> Outcome:
        """The request once all its calls have ended, or as it is when that takes too long."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            found = self._messplus.get(f"/requests/{request_id}").raise_for_status().json()
            expected = 1 + found["exploration_calls"]
            if len(found["calls"]) >= expected or time.monotonic() > deadline:
                return dict(found)
            time.sleep(0.02)

    def _feedback(self, **body: Any) -> None:
        self._messplus.post("/feedback", json=body).raise_for_status()
