"""One client's session with the proxy: ask, check, label as a user would, look the outcome up."""

import random
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httpx
from openai import APIStatusError, OpenAI

from examples.tiny_zoo.tasks import Task, is_satisfactory
from litellm_messplus.inspecting.client import error_of, in_one_line, refuses_key, wrong_key

# What the proxy says when it refuses a request, in one line.


def message_of(error: APIStatusError) -> str:
    """Return the proxy's own words, else its status."""
    body = error.body
    message = body.get("message") if isinstance(body, dict) else None
    return in_one_line(message, error.status_code)


def refusal(error: APIStatusError, url: str) -> str:
    """Describe what the proxy on that URL refuses, and why."""
    if refuses_key(error.status_code, error.type):
        return wrong_key(url, message_of(error))
    return f"the proxy on {url} refuses a request: {message_of(error)}"


def refusal_of_route(error: httpx.HTTPError, url: str) -> str:
    """Explain why one of the plugin's own routes on that URL gave no usable answer."""
    if not isinstance(error, httpx.HTTPStatusError):
        return f"the proxy on {url} does not answer any more ({_reason(error)}): see its log"
    answer = error.response
    message, kind = error_of(answer)
    words = in_one_line(message, answer.status_code)
    if refuses_key(answer.status_code, kind):
        return wrong_key(url, words)
    return f"the proxy on {url} fails at {answer.request.url.path}: {words}"


def _reason(error: httpx.HTTPError) -> str:
    return " ".join(str(error).split()) or type(error).__name__


# Simulated users: only some say whether an answer satisfied, the unsatisfied more often.

BIAS = 3.0
"""How many times as often unsatisfied users answer as satisfied ones."""
SATISFIED = 0.8
"""The share of satisfied users at which ``share`` of all answer: the alpha of the demo's zoos."""


@dataclass(frozen=True, slots=True)
class SimulatedCrowd:
    """The users, of whom ``share`` give feedback, greater than 0 and at most 1.

    From a share of 0.47 on unsatisfied users always answer, and the bias is less than ``BIAS``; at
    1 all users do, and there is none.
    """

    share: float
    seed: int = 0

    def answer_shares(self) -> tuple[float, float]:
        """Return how likely a satisfied and an unsatisfied user give feedback."""
        satisfied = self.share / (SATISFIED + BIAS * (1.0 - SATISFIED))
        unsatisfied = min(1.0, BIAS * satisfied)
        return (self.share - (1.0 - SATISFIED) * unsatisfied) / SATISFIED, unsatisfied

    def answers(self, number: int, satisfied: bool) -> bool:
        """Decide whether the user of that request says anything; equal seeds give equal draws, in
        whichever order requests end."""
        if_satisfied, if_unsatisfied = self.answer_shares()
        draw = random.Random(f"{self.seed} {number}").random()
        return draw < (if_satisfied if satisfied else if_unsatisfied)


# Where the labels of a demo come from: the modes of `--labels`.

ALLOWED = (
    "all, checks, judge, judge:largest, auto, or feedback:SHARE with a share above 0 and up to 1"
)
"""What `--labels` takes."""


@dataclass(frozen=True, slots=True)
class Labelling:
    """The work of a demo's client for the labels, and ``zoo``, that of `examples/tiny_zoo` whose
    settings do the rest.

    With ``sends_reference`` a request carries the right answer in its metadata. ``crowd`` are the
    users whose feedback is posted; None posts none. With ``labels_explorations`` the answers that
    no user saw get feedback too.
    """

    mode: str
    zoo: str
    crowd: SimulatedCrowd | None = None
    sends_reference: bool = False
    labels_explorations: bool = False

    @classmethod
    def parse(cls, given: str, seed: int) -> "Labelling":
        """Parse a mode as given. Raises ValueError for anything but what is allowed."""
        match given.partition(":"):
            case "all", "", _:
                all_users = SimulatedCrowd(1.0)
                return cls(given, "tiny-zoo", all_users, labels_explorations=True)
            case "checks", "", _:
                return cls(given, "tiny-zoo-checked", sends_reference=True)
            case "judge", "", _:
                return cls(given, "tiny-zoo-judged")
            case "judge", _, "largest":
                return cls(given, "tiny-zoo-judged-by-largest")
            case "auto", "", _:
                return cls(given, "tiny-zoo-auto")
            case "feedback", _, share:
                return cls(given, "tiny-zoo-crowd", SimulatedCrowd(_share(share), seed))
        raise ValueError(f"allowed: {ALLOWED}")


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0.0 < share <= 1.0:
        raise ValueError(f"allowed: {ALLOWED}")
    return share


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
    """The proxy's own figures of the labels: how many requests have one, the share satisfied, the
    bounds of the true share at 95 %, and the unit that the zoo counts in.

    The shares are None without a label, and all is where the key is no administrator's.
    """

    labelled: int | None = None
    rate: float | None = None
    low: float | None = None
    high: float | None = None
    cost_unit: str | None = None


def look_up(messplus: httpx.Client, request_id: str) -> Outcome:
    """Read a request as logged, once all its calls have ended or that takes too long."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        found = messplus.get(f"/requests/{request_id}").raise_for_status().json()
        expected = 1 + found["exploration_calls"]
        if len(found["calls"]) >= expected or time.monotonic() > deadline:
            return dict(found)
        time.sleep(0.02)


class Session:
    """A client that sends tasks, from any number of threads, and labels them as ``labelling`` says.

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
        if self._labelling.labels_explorations:
            self._label_explorations(request_id, task)
        return Sent(request_id, satisfied)

    def look_up(self, request_id: str) -> Outcome:
        """Read the request as logged, once all its calls have ended or that takes too long."""
        return look_up(self._messplus, request_id)

    def reported(self, like: Outcome, requests: int) -> Reported:
        """Return what the proxy reports of the newest ``requests`` under the same promise as
        ``like``.

        They are this session's where no one else used the zoo meanwhile.
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
            found["judged"], found["rate"], found["low"], found["high"], level["cost_unit"]
        )

    def judging(self) -> float | None:
        """Ask what judges of the zoo have cost so far, in dollars; None where the key is no
        administrator's."""
        response = self._messplus.get("/status")
        if response.status_code == HTTPStatus.FORBIDDEN:
            return None
        judges = response.raise_for_status().json()["judges"]
        return float(sum(each["cost"] or 0.0 for each in judges if each["zoo"] == self._model))

    def _metadata(self, task: Task) -> dict[str, Any]:
        if not self._labelling.sends_reference:
            return {}
        return {"metadata": {"messplus_reference": task.answer}}

    def _label_explorations(self, request_id: str, task: Task) -> None:
        """Label the unseen answers, where there are any; they are read back, for the demo's proxy
        is asked to store them."""
        decided = self._messplus.get(f"/requests/{request_id}").raise_for_status().json()
        if not decided["exploration_calls"]:
            return
        for call in self.look_up(request_id)["calls"]:
            if call["role"] == "exploration" and call["status"] == "success":
                satisfied = is_satisfactory(task, call["answer"] or "")
                self._feedback(id=request_id, call_id=call["call_id"], satisfied=satisfied)

    def _feedback(self, **body: Any) -> None:
        self._messplus.post("/feedback", json=body).raise_for_status()
