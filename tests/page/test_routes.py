"""The page's routes: who gets what, and with which headers."""

import asyncio
import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy.exc import OperationalError

from litellm_messplus.certificate.claim import certificate_of
from litellm_messplus.figures.figure import LINK
from litellm_messplus.figures.templates import lines
from litellm_messplus.page import routes
from litellm_messplus.page.data import CERTIFIED_DAYS, PageData
from litellm_messplus.page.routes import CONTENT_TYPES, COOKIE, HEADERS, files
from litellm_messplus.status.alerts import AlertKind
from tests.page.seeded import ZOO
from tests.page.serving import KEY, ServedPage
from tests.support.markdown import ROOT
from tests.support.patience import PATIENT

STATIC = Path(routes.__file__).parent / "static"
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    "img-src": "'self' data:",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'self'",
}
FROM_THE_PAGE = {"sec-fetch-site": "same-origin"}
PROMISE = "zoo=llama&service_level=default"
DATA = (
    *("overview", f"series?{PROMISE}", f"series?{PROMISE}&days=7"),
    *(f"details?{PROMISE}", f"details?{PROMISE}&days=7"),
    f"certificate?{PROMISE.partition('&')[0]}",
    *(f"requests?{PROMISE}", "requests/nobodys"),
)


@pytest.fixture
def client(page: ServedPage) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=page.url, timeout=PATIENT) as opened:
        yield opened


@pytest.fixture
def signed_in(client: httpx.Client) -> httpx.Client:
    answer = client.post("session/key", headers={"authorization": f"Bearer {KEY}"})
    assert answer.status_code == 204
    return client


def test_its_address_leads_to_it(page: ServedPage) -> None:
    answer = httpx.get(page.url.rstrip("/"), follow_redirects=False, timeout=PATIENT)

    assert answer.is_redirect
    assert answer.headers["location"] == "ui/"


@pytest.mark.parametrize(
    "name", ["", *(f"static/{files().version}/{name}" for name in files().by_name)]
)
def test_every_file_goes_to_anybody_under_a_strict_policy(client: httpx.Client, name: str) -> None:
    answer = client.get(name)

    assert answer.status_code == 200
    policy = dict(
        part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";")
    )
    assert policy == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "SAMEORIGIN"


def test_a_file_is_asked_for_once_and_the_index_each_time(client: httpx.Client) -> None:
    index = client.get("")
    script = client.get(f"static/{files().version}/main.js")
    other = client.get("static/another/main.js")

    assert f'src="static/{files().version}/main.js"' in index.text
    assert 'static/main.js"' not in index.text
    assert index.headers["cache-control"] == "no-cache"
    assert "immutable" in script.headers["cache-control"]
    assert other.headers["cache-control"] == "no-cache"
    assert other.content == script.content


@pytest.mark.parametrize("name", ["nothing.js", "..%2froutes.py", "../routes.py", "%2e%2e/data.py"])
def test_there_are_no_other_files(client: httpx.Client, name: str) -> None:
    assert client.get(f"static/{files().version}/{name}").status_code == 404


def test_all_that_lies_there_is_served_but_the_licence() -> None:
    found = {path for path in STATIC.rglob("*") if path.is_file() and path.name != "LICENSE"}

    assert {path.name for path in found} == set(files().by_name)
    assert {path.suffix.removeprefix(".") for path in found} == set(CONTENT_TYPES)


def test_our_own_scripts_and_style_stay_small() -> None:
    for kind, most in (("*.js", 1_500), ("*.css", 700)):
        assert sum(len(path.read_text().splitlines()) for path in STATIC.glob(kind)) <= most


class Tags(HTMLParser):
    """Every tag with its attributes, and the text in scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inline = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] in ("script", "style"):
            self.inline += data.strip()


def test_the_page_has_no_script_or_style_in_it() -> None:
    tags = Tags()
    tags.feed((STATIC / "index.html").read_text())

    assert tags.inline == ""
    assert not [name for _, given in tags.found for name in given if name.startswith("on")]
    assert not [tag for tag, given in tags.found if tag == "style" or "style" in given]


def test_every_module_that_is_used_is_there_and_fetched_early() -> None:
    html = (STATIC / "index.html").read_text()
    early = set(re.findall(r'(?:href|src)="static/(\w+\.js)"', html))
    modules = {path.name for path in STATIC.glob("*.js")}
    used = {
        name
        for path in STATIC.glob("*.js")
        for name in re.findall(r'from "\./(\w+\.js)"', path.read_text())
    }

    assert early == modules
    assert used | {"main.js", "theme.js"} == modules


def test_words_never_become_markup() -> None:
    scripts = "".join(path.read_text() for path in STATIC.glob("*.js"))

    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert way not in scripts
    assert "http://" not in scripts.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in scripts


@pytest.mark.parametrize("route", DATA)
def test_data_goes_to_nobody_who_has_not_signed_in(client: httpx.Client, route: str) -> None:
    assert client.get(f"data/{route}").status_code == 401
    other = {"authorization": "Bearer sk-of-somebody"}
    assert client.get(f"data/{route}", headers=other).status_code == 403
    cookie = {"cookie": f"{COOKIE}=guess"}
    assert client.get(f"data/{route}", headers=cookie).status_code == 401


@pytest.mark.parametrize("route", DATA[:-1])
def test_data_goes_to_who_has_and_stays_in_no_cache(signed_in: httpx.Client, route: str) -> None:
    answer = signed_in.get(f"data/{route}")

    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-security-policy"] == HEADERS["content-security-policy"]


def test_a_request_is_explained_by_its_id(signed_in: httpx.Client) -> None:
    newest = signed_in.get(f"data/requests?{PROMISE}").json()["requests"][0]
    found = signed_in.get(f"data/requests/{newest['request_id']}").json()

    assert found["request"]["request_id"] == newest["request_id"]
    assert found["sentences"][0].startswith(f"Request {newest['request_id']} of ")
    assert "key_hash" not in found["request"]
    assert signed_in.get("data/requests/nobodys").status_code == 404


@pytest.mark.parametrize(
    "wrong",
    [
        f"series?{PROMISE}&days=0",
        f"details?{PROMISE}&days=367",
        f"series?{PROMISE}&days=367",
        "series?zoo=llama",
        f"requests?{PROMISE}&verdict=perhaps",
        f"requests?{PROMISE}&before=0",
        f"requests?{PROMISE}&key={'x' * 256}",
    ],
)
def test_what_is_out_of_bounds_is_refused(signed_in: httpx.Client, wrong: str) -> None:
    assert signed_in.get(f"data/{wrong}").status_code == 422


def test_the_certificate_is_that_of_the_command(signed_in: httpx.Client, database_url: str) -> None:
    found = signed_in.get(f"data/certificate?zoo={ZOO}").json()
    since = date.fromisoformat(found["since"])
    until = datetime.fromisoformat(found["until"])
    same = asyncio.run(certificate_of(database_url, ZOO, since, now=until)).as_dict()

    assert found["promises"] == same["promises"]
    assert until.date() - since == timedelta(days=CERTIFIED_DAYS)
    assert signed_in.get("data/certificate?zoo=nobodys").status_code == 404


@pytest.mark.parametrize("kind", AlertKind)
def test_what_to_do_about_an_alert_is_a_line_of_the_runbook(kind: AlertKind) -> None:
    section = (ROOT / "docs" / "runbook.md").read_text().split(f"\n## {kind}\n")[1]
    own = LINK.sub(r"\1", section.partition("\n## ")[0])

    assert lines("page/to_do.j2", kind=kind, zoo="llama")[0] in " ".join(own.split())


def test_a_code_is_made_for_a_key_alone(client: httpx.Client) -> None:
    assert client.post("codes").status_code == 401
    answer = client.post("codes", headers={"authorization": f"Bearer {KEY}"})
    assert answer.json()["seconds"] == 300


def test_a_session_makes_no_codes(signed_in: httpx.Client) -> None:
    """Or whoever sits down at an open browser would have access for ever."""
    assert signed_in.post("codes").status_code == 401


def test_a_code_signs_in_once_with_a_cookie_that_no_script_reads(client: httpx.Client) -> None:
    code = client.post("codes", headers={"authorization": f"Bearer {KEY}"}).json()["code"]
    answer = client.post("session", json={"code": code})

    assert answer.status_code == 204
    cookie = answer.headers["set-cookie"].lower()
    for attribute in ("httponly", "samesite=strict", "path=/messplus/ui", "max-age=43200"):
        assert attribute in cookie
    assert "secure" not in cookie
    assert client.get("data/overview").status_code == 200
    assert client.post("session", json={"code": code}).status_code == 401


def test_behind_https_the_cookie_stays_there(client: httpx.Client) -> None:
    headers = {"authorization": f"Bearer {KEY}", "x-forwarded-proto": "https"}

    assert "secure" in client.post("session/key", headers=headers).headers["set-cookie"].lower()


def test_signing_out_ends_the_session(signed_in: httpx.Client) -> None:
    session = signed_in.cookies[COOKIE]
    assert signed_in.delete("session", headers=FROM_THE_PAGE).status_code == 204

    cookie = {"cookie": f"{COOKIE}={session}"}
    assert signed_in.get("data/overview", headers=cookie).status_code == 401


def test_another_site_signs_nobody_out(signed_in: httpx.Client) -> None:
    """Nor another port of the host, to which the browser sends the cookie too."""
    assert signed_in.delete("session").status_code == 403
    assert signed_in.get("data/overview").status_code == 200


def test_so_many_codes_may_be_tried_in_a_minute(database_url: str) -> None:
    page = ServedPage(database_url, codes_per_minute=2).start()
    with httpx.Client(base_url=page.url, timeout=PATIENT) as client:
        answers = [client.post("session", json={"code": "guess"}) for _ in range(3)]
    page.stop()

    assert [each.status_code for each in answers] == [401, 401, 429]
    assert int(answers[-1].headers["retry-after"]) > 0


@pytest.mark.parametrize(
    "route",
    [
        "series?service_level=default&zoo=%00",
        *(f"requests?{PROMISE}&{n}=%00" for n in ("model", "key")),
    ],
)
def test_a_text_that_no_database_holds_is_refused(signed_in: httpx.Client, route: str) -> None:
    assert signed_in.get(f"data/{route}").status_code == 422


def test_a_database_that_is_away_is_reported_and_counted(
    signed_in: httpx.Client, page: ServedPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> None:
        raise OperationalError("SELECT", {}, OSError("away"))

    monkeypatch.setattr(PageData, "overview", fail)
    answer = signed_in.get("data/overview")

    assert answer.status_code == 503
    assert answer.json()["detail"] == "the database does not answer: try again"
    assert page.counters.as_dict()["page_failures"] == 1
