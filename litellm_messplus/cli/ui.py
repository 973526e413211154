"""`messplus ui`: a link to the page of a running proxy, which signs in whoever opens it first."""

from typing import Annotated

import typer

from litellm_messplus.cli import keys


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
    from litellm_messplus.inspecting.asking import (
        NoAnswerError,
        NoRouteError,
        OtherServerError,
        ask,
    )

    try:
        return f"{url}/messplus/ui/#code={ask('POST', url, key, 'ui/codes')['code']}"
    except (TypeError, KeyError) as error:
        raise OtherServerError(url) from error
    except NoRouteError as error:
        raise NoAnswerError(
            f"the proxy on {url} has no page: it runs without the plugin, or with DISABLE_ADMIN_UI"
        ) from error
