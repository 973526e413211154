"""The routes under `/messplus`, the page's too, as the application that answers what a worker
forwards."""

import binascii
import json
import math
import os
from base64 import urlsafe_b64decode
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, Response
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.access import (
    ACCESS,
    AUTHENTICATE,
    administrator,
    shows_a_key,
    with_key,
)
from litellm_messplus.brain.feedback import FeedbackDesk
from litellm_messplus.brain.influence import TokenBuckets
from litellm_messplus.brain.messages import Asking, Caller, Shown
from litellm_messplus.brain.monitoring import SharedReadings, StatusWatch
from litellm_messplus.brain.routes import build_routes
from litellm_messplus.brain.zoos import ZooDesk, add_one_zoo, build_zoo_routes
from litellm_messplus.page.data import PageData
from litellm_messplus.page.routes import COOKIE, NOT_KEPT, PATH, Check, build_page_routes
from litellm_messplus.page.sign_ins import SignIns
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.store.database import create_engine

CODES_PER_MINUTE = 30
"""Sign-in codes that all clients together may try: each costs a query."""
CONNECTIONS = 3
"""Database connections for the page alone, so that its viewers take none from feedback."""
LITELLM_COOKIE = "token"
"""The cookie of LiteLLM's dashboard: a JWT that holds the key of the signed-in user."""
LONGEST_COOKIE = 8192
ZOOS = f"{PATH}/data/zoos"
"""The path under which the page shows and changes a zoo: its cookie's path is the page's."""
SWITCH = "DISABLE_ADMIN_UI"
"""LiteLLM's own variable: if it switches off the dashboard, the page is off too."""

Authenticate = Callable[[list[tuple[bytes, bytes]]], Awaitable[Caller]]
"""Finds the caller of a request by its headers; raises an HTTPException for a key that LiteLLM
refuses."""


class Web:
    """The application of the routes. It has database connections of its own for the page."""

    def __init__(
        self,
        database: AsyncEngine,
        feedback: FeedbackDesk,
        zoos: ZooDesk,
        watch: StatusWatch,
        counters: Counters,
    ) -> None:
        self._database = create_engine(database.url, connections=CONNECTIONS)
        self._readings = SharedReadings()
        self.app = app = FastAPI(openapi_url=None)
        app.include_router(build_routes(feedback, counters, watch, ACCESS))
        app.include_router(build_zoo_routes(zoos, counters, ACCESS.administrator))
        if is_switched_off():
            return
        data = PageData(self._database, watch.figures, self._readings.get)
        sign_ins = SignIns(self._database)
        app.include_router(
            build_page_routes(
                data,
                sign_ins,
                counters,
                administrator=administrator,
                viewer=Viewer(sign_ins),
                own=own_origin,
                limited=at_most(CODES_PER_MINUTE),
            )
        )
        app.include_router(zoo_routes(zoos, sign_ins, counters))

    async def answer(self, asking: Asking, authenticate: Authenticate) -> Shown:
        """Answer a client's request, whose key ``authenticate`` checks where a route asks for
        it."""
        body, parts, shown = [asking.body], list[bytes](), Shown(500, [], b"")
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": asking.method,
            "scheme": asking.scheme,
            "path": asking.path,
            "raw_path": asking.path.encode(),
            "root_path": asking.root_path,
            "query_string": asking.query,
            "headers": list(asking.headers),
            "client": None,
            "server": None,
            AUTHENTICATE: authenticate,
        }

        async def receive() -> dict[str, Any]:
            if not body:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": body.pop(), "more_body": False}

        async def send(message: Mapping[str, Any]) -> None:
            nonlocal shown
            if message["type"] == "http.response.start":
                shown = Shown(message["status"], list(message.get("headers", ())), b"")
            else:
                parts.append(message.get("body", b""))

        await self.app(scope, receive, send)
        return shown._replace(body=b"".join(parts))

    async def close(self) -> None:
        """Cancel the running readings, and close the connections."""
        await self._readings.close()
        await self._database.dispose()


def zoo_routes(desk: ZooDesk, sign_ins: SignIns, counters: Counters) -> APIRouter:
    """Build the routes of the modes for users who are signed in to the page."""
    viewer, editor = Viewer(sign_ins), Viewer(sign_ins, is_surely_of_this_origin)
    routes = APIRouter(tags=["messplus"], dependencies=[Depends(_not_kept)])
    add_one_zoo(routes, ZOOS, desk, counters, viewer, editor)
    return routes


def _not_kept(response: Response) -> None:
    response.headers.update(NOT_KEPT)


def is_switched_off() -> bool:
    """Tell whether the operator has switched off the page on this proxy."""
    return os.environ.get(SWITCH, "").strip().lower() in ("1", "true", "t", "yes", "on")


def is_of_this_origin(request: Request) -> bool:
    """Tell whether no header shows that another site caused the request. LiteLLM allows every
    origin to read responses, and browsers send cookies to all ports of a host."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")


def is_surely_of_this_origin(request: Request) -> bool:
    """Tell whether the browser's headers show that a page of this origin made the request, as a
    change requires. No script can set these headers; over plain HTTP only `origin` is sent."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc == request.headers.get("host")


async def own_origin(request: Request) -> None:
    """Raise an HTTPException unless a page of this origin surely made the request."""
    if not is_surely_of_this_origin(request):
        raise HTTPException(403, "only the page itself may do this")


def at_most(per_minute: int) -> Check:
    """Build a check that limits the requests of all clients together, as none has a key yet."""
    bucket = TokenBuckets(per_minute)

    async def check(_request: Request) -> None:
        wait = bucket.take(None)
        if wait > 0.0:
            later = {"retry-after": str(math.ceil(wait))}
            raise HTTPException(429, "too many codes were tried: try again later", headers=later)

    return check


class Viewer:
    """Access check for administrators: by a key, by a session of the page, or by LiteLLM's own
    session, whose key LiteLLM checks each time."""

    def __init__(
        self, sign_ins: SignIns, is_own: Callable[[Request], bool] = is_of_this_origin
    ) -> None:
        self._sign_ins = sign_ins
        self._is_own = is_own

    async def __call__(self, request: Request) -> Caller:
        """Return the administrator, or raise an HTTPException for any other caller. A cookie counts
        only if ``is_own`` holds."""
        if shows_a_key(request):
            return await administrator(request)
        if self._is_own(request):
            if await self._sign_ins.is_open(request.cookies.get(COOKIE, "")):
                return Caller(None, is_admin=True)  # a session opens for administrators alone
            key = key_of_dashboard(request.cookies.get(LITELLM_COOKIE, ""))
            if key is not None:
                return await administrator(with_key(request, key))
        raise HTTPException(401, "no one is signed in to the page")


def key_of_dashboard(cookie: str) -> str | None:
    """Read the key from LiteLLM's cookie, None if there is none. Its signature is not verified,
    since LiteLLM checks the key."""
    parts = cookie.split(".")
    if len(parts) != 3 or len(cookie) > LONGEST_COOKIE:
        return None
    try:
        claims = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return None
    key = claims.get("key") if isinstance(claims, dict) else None
    is_plain = isinstance(key, str) and key.isascii() and key.isprintable()
    return key if is_plain and key else None
