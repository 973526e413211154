"""What the brain asks of this worker: keys of LiteLLM's, the calls of judges, ids; and what it is
told."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import HTTPException, Request
from starlette.types import Message as AsgiMessage

from litellm_messplus.brain.messages import Caller, ZooNow
from litellm_messplus.costs.price import Price
from litellm_messplus.labels.judge.asking import Reply
from litellm_messplus.labels.judge.prompts import Message
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.serving.judges import JudgeCalls
from litellm_messplus.serving.litellm_seam import authenticate
from litellm_messplus.serving.surfaces.answers import plain_response_id
from litellm_messplus.settings.zoo import Zoo

OPEN_TO_EVERY_KEY = b"/v1/models"
_BODY_HEADERS = (b"content-length", b"content-type")
JUDGES = 100
"""The judges that are remembered."""


class WorkerHands:
    """The hands of one worker. ``zoos`` are the configured ones, as they have become; ``holding``
    are those whose conversations are held, ``routed`` those whose requests are all routed, ``safe``
    what serves while the brain is away."""

    def __init__(self, configured: Mapping[str, Zoo]) -> None:
        self._configured = configured
        self.zoos = dict(configured)
        self.holding: frozenset[str] = frozenset()
        self.routed: frozenset[str] = frozenset()
        self.safe: dict[str, str] = {}
        self._judges: Bounded[tuple[str, str | None], JudgeCalls] = Bounded(JUDGES)

    async def authenticate(self, headers: list[tuple[bytes, bytes]]) -> Caller:
        """Find the caller with these headers. LiteLLM lets only administrators use a route that it
        does not know, so the key is checked as for listing the models, which every valid key may do
        (measured on 1.106.2).

        Raises HTTPException as LiteLLM refuses one."""
        try:
            return Caller(*await authenticate(_as_model_listing(headers)))
        except HTTPException:
            raise
        except Exception as error:  # LiteLLM's own, which has no common class
            status = str(getattr(error, "code", ""))
            reason = getattr(error, "message", None) or str(error)
            raise HTTPException(int(status) if status.isdigit() else 401, reason) from error

    async def judge(
        self,
        model: str,
        candidate: str | None,
        messages: Sequence[Message],
        schema: Mapping[str, Any],
        timeout_seconds: float,
    ) -> Reply:
        return await self._judge(model, candidate)(messages, schema, timeout_seconds)

    async def judge_price(self, model: str, candidate: str | None) -> Price | None:
        return self._judge(model, candidate).price()

    async def decoded(self, given: str) -> str:
        return plain_response_id(given)

    def know(self, zoos: dict[str, ZooNow]) -> None:
        self.zoos.update(
            {
                name: self._configured[name].live(now.prices, now.absent, now.anchor)
                for name, now in zoos.items()
                if name in self._configured
            }
        )
        self.routed = frozenset(name for name, now in zoos.items() if now.is_routed)
        self.holding = frozenset(name for name, now in zoos.items() if now.is_holding)
        self.safe.update({name: now.safe for name, now in zoos.items()})

    def written(self, ended: int) -> None:
        """Do nothing: the connection keeps what is not written."""

    def holds(self, zoo: str) -> bool:
        """Tell whether the conversations of a zoo are held now."""
        return zoo in self.holding

    def routes_all(self, zoo: str) -> bool:
        """Tell whether all requests of a zoo are routed, as far as is known."""
        return zoo in self.routed

    def _judge(self, model: str, candidate: str | None) -> JudgeCalls:
        return self._judges.newest((model, candidate), lambda: JudgeCalls(model, candidate))


def _as_model_listing(headers: Sequence[tuple[bytes, bytes]]) -> Request:
    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "server": ("proxy", 80),
        "path": OPEN_TO_EVERY_KEY.decode(),
        "raw_path": OPEN_TO_EVERY_KEY,
        "query_string": b"",
        "root_path": "",
        "headers": [(bytes(n), bytes(v)) for n, v in headers if bytes(n) not in _BODY_HEADERS],
        "state": {},
    }
    return Request(scope, receive=_empty_body)


async def _empty_body() -> AsgiMessage:
    return {"type": "http.request", "body": b"", "more_body": False}
