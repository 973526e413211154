"""Clients that ask and judge in threads of their own, and remember what was acknowledged."""

import threading
from collections import Counter
from collections.abc import Sequence

import httpx

from tests.support.patience import PATIENT
from tests.support.proxy import Proxy, ask

CLIENTS = 4


class Traffic:
    """Until it is told to stop. What one proxy answers is judged at the next one.

    Where ``goes_on`` is false, a client ends with its first broken connection: the proxy is gone.
    ``refused`` counts the answers to requests that were not 200, ``broken`` the connections,
    ``unrouted`` the answers without our headers.
    """

    def __init__(self, proxies: Sequence[Proxy], *, goes_on: bool = False) -> None:
        self.acknowledged: list[tuple[str, float]] = []
        self.answered = 0
        self.refused: Counter[int] = Counter()
        self.broken = 0
        self.unrouted = 0
        self._proxies = proxies
        self._goes_on = goes_on
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(n,)) for n in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENT)

    def _run(self, number: int) -> None:
        asked = self._proxies[number % len(self._proxies)]
        judged = self._proxies[(number + 1) % len(self._proxies)]
        with asked.client() as asking, judged.client() as judging:
            for turn in range(100_000):
                if self._stop.is_set():
                    return
                try:
                    self._ask_and_judge(asking, judging, f"client {number} asks: {turn}")
                except httpx.TransportError:
                    self.broken += 1
                    if not self._goes_on:
                        return

    def _ask_and_judge(self, asking: httpx.Client, judging: httpx.Client, prompt: str) -> None:
        answer = ask(asking, prompt)
        if answer.status_code != 200:
            self.refused[answer.status_code] += 1
            return
        self.answered += 1
        request_id = answer.headers.get("x-messplus-request-id")
        if request_id is None:  # a worker that starts without its database routes nothing
            self.unrouted += 1
            return
        satisfied = "huge" in answer.text or len(prompt) % 3 == 0
        verdict = {"id": request_id, "satisfied": satisfied}
        if judging.post("/messplus/feedback", json=verdict).status_code == 200:
            self.acknowledged.append((request_id, float(satisfied)))


def assert_every_acknowledged_label_is_there(proxy: Proxy, traffic: Traffic) -> None:
    labels = {row["request_id"]: row["value"] for row in proxy.rows("SELECT * FROM current_labels")}
    assert len(traffic.acknowledged) > 20
    assert {name: labels.get(name) for name, _ in traffic.acknowledged} == dict(
        traffic.acknowledged
    )
