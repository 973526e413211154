"""The page on this proxy: its data from this worker, and LiteLLM's authentication for it."""

import binascii
import json
import math
import os
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.deciding.decider import Engine
from litellm_messplus.page.data import PageData
from litellm_messplus.page.routes import COOKIE, NOT_KEPT, PATH, Check, build_page_routes
from litellm_messplus.page.sign_ins import SignIns
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.serving.authentication import Caller, administrator, shows_a_key, with_key
from litellm_messplus.serving.influence import TokenBuckets
from litellm_messplus.serving.modes import LiveModes, ModeChanges
from litellm_messplus.serving.monitoring import SharedReadings, StatusWatch
from litellm_messplus.serving.zoos import ZooDesk, add_one_zoo
from litellm_messplus.store.database import create_engine

CODES_PER_MINUTE = 30
"""Codes that anybody may try at one worker: one costs a query."""
CONNECTIONS = 3
"""To the database, for the page alone: however many look at it, feedback keeps its own."""
LITELLM_COOKIE = "token"
"""Of LiteLLM's dashboard: a JWT that holds the key of whoever has signed in there."""
LONGEST_COOKIE = 8192
ZOOS = f"{PATH}/data/zoos"
"""Where the page shows and changes a zoo: its cookie goes no higher than the page."""
SWITCH = "DISABLE_ADMIN_UI"
"""LiteLLM's own variable: where its dashboard is switched off, so is the page."""


class Page:
    """One a worker."""

    def __init__(
        self,
        database: AsyncEngine,
        engines: Mapping[str, Engine],
        modes: LiveModes,
        watch: StatusWatch,
        counters: Counters,
    ) -> None:
        self._database = create_engine(
            database.url.render_as_string(hide_password=False), connections=CONNECTIONS
        )
        changes = ModeChanges(self._database, modes, counters)
        self._zoos = ZooDesk(self._database, engines, modes, changes)
        self._readings = SharedReadings()
        self._watch = watch
        self._counters = counters

    def routes(self) -> APIRouter:
        """Return the page's routes, or none where it is switched off."""
        if is_switched_off():
            return APIRouter()
        data = PageData(self._database, self._watch.figures, self._readings.get)
        sign_ins = SignIns(self._database)
        shown = build_page_routes(
            data,
            sign_ins,
            self._counters,
            administrator=administrator,
            viewer=Viewer(sign_ins),
            own=own_origin,
            limited=at_most(CODES_PER_MINUTE),
        )
        routes = APIRouter()
        routes.include_router(shown)
        routes.include_router(zoo_routes(self._zoos, sign_ins, self._counters))
        return routes

    async def close(self) -> None:
        """Stop reading."""
        await self._readings.close()
        await self._database.dispose()


def zoo_routes(desk: ZooDesk, sign_ins: SignIns, counters: Counters) -> APIRouter:
    """Build the routes of the modes for those who are signed in to the page."""
    viewer, editor = Viewer(sign_ins), Viewer(sign_ins, is_surely_of_this_origin)
    routes = APIRouter(tags=["messplus"], dependencies=[Depends(_not_kept)])
    add_one_zoo(routes, ZOOS, desk, counters, viewer, editor)
    return routes


def _not_kept(response: Response) -> None:
    response.headers.update(NOT_KEPT)


def is_switched_off() -> bool:
    """Tell whether the operator wants no page for people on this proxy."""
    return os.environ.get(SWITCH, "").strip().lower() in ("1", "true", "t", "yes", "on")


def is_of_this_origin(request: Request) -> bool:
    """Tell whether no other site has made the browser ask. LiteLLM allows every origin to read
    answers, and browsers send cookies to all ports of a host."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")


def is_surely_of_this_origin(request: Request) -> bool:
    """Tell whether the browser says that a page of this origin asks: for a change it is not enough
    that nothing speaks against it. No script can set these headers; over plain HTTP there is only
    the second."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc == request.headers.get("host")


async def own_origin(request: Request) -> None:
    """Raise an HTTPException where it is not surely a page of this origin that asks."""
    if not is_surely_of_this_origin(request):
        raise HTTPException(403, "only the page itself may do this")


def at_most(per_minute: int) -> Check:
    """Build what lets so many requests in, whoever asks: nobody has shown a key yet."""
    bucket = TokenBuckets(per_minute)

    async def check(_request: Request) -> None:
        wait = bucket.take(None)
        if wait > 0.0:
            later = {"retry-after": str(math.ceil(wait))}
            raise HTTPException(429, "too many codes were tried: try again later", headers=later)

    return check


class Viewer:
    """Lets those in who run the proxy: by a key, by a session of the page, or by
    LiteLLM's own session, whose key LiteLLM checks each time."""

    def __init__(
        self, sign_ins: SignIns, is_own: Callable[[Request], bool] = is_of_this_origin
    ) -> None:
        self._sign_ins = sign_ins
        self._is_own = is_own

    async def __call__(self, request: Request) -> Caller:
        """Return who it is, or raise an HTTPException for anybody else. A cookie counts where
        ``is_own`` holds."""
        if shows_a_key(request):
            return await administrator(request)
        if self._is_own(request):
            if await self._sign_ins.is_open(request.cookies.get(COOKIE, "")):
                return Caller(None, is_admin=True)  # a session opens for administrators alone
            key = key_of_dashboard(request.cookies.get(LITELLM_COOKIE, ""))
            if key is not None:
                return await administrator(with_key(request, key))
        raise HTTPException(401, "nobody is signed in to the page")


def key_of_dashboard(cookie: str) -> str | None:
    """Take the key from LiteLLM's cookie. Its signature is not looked at: a key speaks for
    itself."""
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
