"""`messplus ui`: a link to the page of a running proxy, which signs in whoever opens it first."""

from typing import Annotated

import typer

from litellm_messplus.cli import keys

SECONDS = 30.0
"""How long the proxy may take to answer."""


def ui(
    url: Annotated[str, typer.Option(help="Of the running proxy.")] = "http://127.0.0.1:4000",
    key: keys.ProxyKey = None,
) -> None:
    """Print a link to the page of a running proxy. It signs in once, within five minutes."""
    from litellm_messplus.errors import MessplusError

    try:
        print(link(url.rstrip("/"), key or keys.find()))
    except MessplusError as error:
        raise SystemExit(f"messplus: {error}") from error


def link(url: str, key: str) -> str:
    """Make a one-time link. Raises NoAnswerError where the proxy gives none.

    The code stands behind the `#`, which browsers send to nobody: no log of a server has it.
    """
    import httpx

    from litellm_messplus.inspecting.asking import NoAnswerError

    headers = {"authorization": f"Bearer {key}"}
    try:
        answer = httpx.post(f"{url}/messplus/ui/codes", headers=headers, timeout=SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NoAnswerError(f"no proxy answers on {url}: {error}") from error
    if answer.status_code in (401, 403):
        raise NoAnswerError(f"the proxy on {url} refuses the key: give another with --key")
    if answer.status_code == 404:
        raise NoAnswerError(
            f"the proxy on {url} has no page: it runs without the plugin, or with DISABLE_ADMIN_UI"
        )
    if answer.status_code != 200:
        raise NoAnswerError(f"the proxy on {url} answered {answer.status_code}")
    return f"{url}/messplus/ui/#code={answer.json()['code']}"
