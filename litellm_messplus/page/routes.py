"""The routes under `/messplus/ui`: the page's files, signing in, and its data as JSON."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from importlib import resources
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.exc import SQLAlchemyError

from litellm_messplus.certificate.reading import NoCertificateError
from litellm_messplus.inspecting.listing import Given, Wanted
from litellm_messplus.inspecting.logged import NotFoundError
from litellm_messplus.page.charts import LONGEST_DAYS
from litellm_messplus.page.data import PageData
from litellm_messplus.page.sign_ins import LASTS, Kind, SignIns
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.store.reading import ReadingTakesTooLongError
from litellm_messplus.store.rows import STORABLE

PATH = "/messplus/ui"
COOKIE = "messplus_session"
Check = Callable[[Request], Awaitable[Any]]
"""A check that raises an HTTPException if the client is not allowed."""
Name = Annotated[str, Query(max_length=255, pattern=STORABLE)]
Days = Annotated[int | None, Query(ge=1, le=LONGEST_DAYS)]
Filter = Annotated[str | None, Query(max_length=255, pattern=STORABLE)]


# The page's static files, sent with the headers that keep them safe.

CONTENT_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
"""The content type of a file, by its suffix; other files are not served."""
INDEX = "index.html"
VENDORED = "vendor"
"""Where the library of the charts lies, as its authors publish it."""
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    ),
    "x-frame-options": "SAMEORIGIN",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}
"""Headers of every answer under the page: only its own scripts and styles, and no data to other
sites."""
KEPT_LONG = {**HEADERS, "cache-control": "private, max-age=31536000, immutable"}
"""Headers of a file under its versioned address, which never changes: it is requested once."""
NOT_KEPT = {**HEADERS, "cache-control": "no-store"}
"""Headers of answers with users' words or credentials: no cache keeps them."""


@dataclass(frozen=True, slots=True)
class Files:
    """The contents of all static files by name. ``version`` is of these, and part of the address of
    each but the index, which names it."""

    version: str
    by_name: dict[str, bytes]


@cache
def files() -> Files:
    """Read the files from the wheel, once."""
    folder = resources.files("litellm_messplus.page") / "static"
    contents = {
        each.name: each.read_bytes()
        for each in (*folder.iterdir(), *(folder / VENDORED).iterdir())
        if each.name.rpartition(".")[2] in CONTENT_TYPES
    }
    everything = b"".join(contents[name] for name in sorted(contents))
    version = sha256(everything).hexdigest()[:16]
    contents[INDEX] = contents[INDEX].replace(b'"static/', f'"static/{version}/'.encode())
    return Files(version, contents)


# The routes.


class Code(BaseModel):
    """The code that `messplus status --ui` printed."""

    model_config = ConfigDict(extra="forbid")

    code: str = Field(min_length=1, max_length=100)


def build_page_routes(
    data: PageData,
    sign_ins: SignIns,
    counters: Counters,
    *,
    administrator: Check,
    viewer: Check,
    own: Check,
    limited: Check,
) -> APIRouter:
    """Build all routes. ``administrator`` requires a key, ``viewer`` accepts a session too; ``own``
    accepts requests of the page itself, and ``limited`` refuses clients that try too many codes."""

    dependencies = [Depends(partial(_refusals, counters))]
    router = APIRouter(prefix=PATH, tags=["messplus"], dependencies=dependencies)
    _add_files(router)
    _add_signing_in(router, sign_ins, administrator, own, limited)
    _add_data(router, data, viewer)
    return router


def _add_files(router: APIRouter) -> None:
    """Add the files, which hold no data and are public."""

    @router.get("", include_in_schema=False)
    async def page() -> Response:
        """Send a browser to the page, whose own addresses are relative to it."""
        return RedirectResponse("ui/", headers=HEADERS)

    @router.get("/", include_in_schema=False)
    async def index() -> Response:
        """Show the page without data."""
        return _file(INDEX, HEADERS)

    @router.get("/static/{version}/{name}", include_in_schema=False)
    async def static(version: str, name: str) -> Response:
        """Send a script or style of the page. A worker of another version has its own."""
        return _file(name, KEPT_LONG if version == files().version else HEADERS)


def _add_signing_in(
    router: APIRouter, sign_ins: SignIns, administrator: Check, own: Check, limited: Check
) -> None:
    @router.post("/codes", dependencies=[Depends(administrator)])
    async def make_code() -> JSONResponse:
        """Make a code that opens the page once; needs an administrator's key."""
        code = await sign_ins.new(Kind.CODE)
        return _json({"code": code, "seconds": LASTS[Kind.CODE].total_seconds()})

    @router.post("/session", dependencies=[Depends(limited)])
    async def sign_in(body: Code, request: Request) -> Response:
        """Open a session for a code."""
        session = await sign_ins.redeem(body.code)
        if session is None:
            raise HTTPException(
                401, "this code was used, or is too old: `messplus status --ui` again"
            )
        return _signed_in(session, request)

    @router.post("/session/key", dependencies=[Depends(administrator)])
    async def sign_in_by_key(request: Request) -> Response:
        """Open a session for a key, so that the browser need not keep it."""
        session = await sign_ins.new(Kind.SESSION)
        return _signed_in(session, request)

    @router.delete("/session", dependencies=[Depends(own)])
    async def sign_out(request: Request) -> Response:
        """End the session of this browser."""
        await sign_ins.end(request.cookies.get(COOKIE, ""))
        answer = Response(status_code=204, headers=HEADERS)
        answer.delete_cookie(COOKIE, path=_cookie_path(request))
        return answer


def _add_data(router: APIRouter, data: PageData, viewer: Check) -> None:
    allowed = [Depends(viewer)]

    @router.get("/data/overview", dependencies=allowed)
    async def overview() -> JSONResponse:
        """Show every promise as it stands, alerts, and what labels cost."""
        return _json(await data.overview())

    @router.get("/data/details", dependencies=allowed)
    async def details(zoo: Name, service_level: Name, days: Days = None) -> JSONResponse:
        """Show the tables of a promise: models, labels, spend, and what became of requests."""
        return _json(await data.details(zoo, service_level, days))

    @router.get("/data/certificate", dependencies=allowed)
    async def certificate(zoo: Name) -> JSONResponse:
        """Show what the labels of the last days prove about a zoo's promises."""
        return _json(await data.certificate(zoo))

    @router.get("/data/series", dependencies=allowed)
    async def series(zoo: Name, service_level: Name, days: Days = None) -> JSONResponse:
        """Show one promise over ``days`` days; without them, over its newest requests."""
        return _json(await data.series(zoo, service_level, days))

    @router.get("/data/requests", dependencies=allowed)
    async def requests(
        zoo: Name,
        service_level: Name,
        model: Filter = None,
        verdict: Given | None = None,
        key: Filter = None,
        exploration: bool | None = None,
        before: Annotated[int | None, Query(ge=1, le=2**62)] = None,
    ) -> JSONResponse:
        """Show the newest requests of a promise that pass the filters, and where to continue."""
        wanted = Wanted(zoo, service_level, model, verdict, key, exploration, before)
        return _json(await data.requests(wanted))

    @router.get("/data/requests/{given}", dependencies=allowed)
    async def request(given: str) -> JSONResponse:
        """Explain one request."""
        return _json(await data.request(given))


async def _refusals(counters: Counters) -> AsyncIterator[None]:
    """Turn our errors into answers that the page can show."""
    try:
        yield
    except NoCertificateError as error:
        raise HTTPException(404, str(error)) from error
    except NotFoundError as error:
        raise HTTPException(
            404, "no request or promise is known by this name, or it is pruned"
        ) from error
    except ReadingTakesTooLongError as error:
        counters.failure("readings_given_up", str(error))
        raise HTTPException(503, f"{error}: try again later") from error
    except (OSError, SQLAlchemyError) as error:  # TimeoutError is an OSError
        counters.failure("page_failures", "the page has to try again")
        raise HTTPException(503, "the database does not answer: try again") from error


def _json(content: dict[str, Any]) -> JSONResponse:
    """Answer with JSON that may hold users' words."""
    return JSONResponse(content, headers=NOT_KEPT)


def _file(name: str, headers: Mapping[str, str]) -> Response:
    found = files().by_name.get(name)
    if found is None:
        raise HTTPException(404, "the page has no such file")
    kind = CONTENT_TYPES[name.rpartition(".")[2]]
    return Response(found, media_type=kind, headers=dict(headers))


def _signed_in(session: str, request: Request) -> Response:
    """Set the session as a cookie that scripts cannot read and other sites cannot send."""
    answer = Response(status_code=204, headers=NOT_KEPT)
    answer.set_cookie(
        COOKIE,
        session,
        max_age=int(LASTS[Kind.SESSION].total_seconds()),
        path=_cookie_path(request),
        secure=_is_https(request),
        httponly=True,
        samesite="strict",
    )
    return answer


def _cookie_path(request: Request) -> str:
    """Return the path of the page, also behind a prefix of the proxy's."""
    before, _, _ = request.url.path.partition(PATH)
    return before + PATH


def _is_https(request: Request) -> bool:
    """Tell whether the client came by HTTPS: a client that claims it falsely only loses its own
    cookie."""
    claimed = request.headers.get("x-forwarded-proto", "")
    return request.url.scheme == "https" or claimed.partition(",")[0].strip() == "https"
