"""One line in the proxy's log at its start: what is on."""

import logging
from collections.abc import Iterator, Mapping

from sqlalchemy import make_url

from litellm_messplus.settings.schema import DEFAULT_LEVEL
from litellm_messplus.version import version
from litellm_messplus.zoo import Zoo

PACKAGE = logging.getLogger("litellm_messplus")
FORMAT = "%(asctime)s - messplus:%(levelname)s: %(message)s"
TIME = "%H:%M:%S"
"""Both as LiteLLM's own lines."""
OWN_CHECKS = ("complete", "json_schema", "reference")


def show_log(package: logging.Logger = PACKAGE) -> None:
    """Let lines of level INFO be seen, on stderr where nobody has set up logging.

    LiteLLM sets up its own loggers alone. A level that was set for ours stands.
    """
    if package.level == logging.NOTSET:
        package.setLevel(logging.INFO)
    if not package.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(FORMAT, TIME))
        package.addHandler(handler)


def banner(
    zoos: Mapping[str, Zoo],
    *,
    encoder: str,
    database: str,
    position: int | None,
    measured: int,
) -> str:
    """``position`` is where the log ends, None while the database is away; ``measured`` is the
    number of deployments whose energy is."""
    end = "which is away" if position is None else f"log at {position}"
    energy = f"of {measured} deployments measured" if measured else "not measured"
    return (
        f"litellm-messplus {version()}: {'; '.join(map(_zoo, zoos.values()))}; encoder {encoder}; "
        f"database {make_url(database).render_as_string()}, {end}; energy {energy}"
    )


def _zoo(zoo: Zoo) -> str:
    alphas = ", ".join(_promises(zoo))
    return (
        f"zoo {zoo.name} ({', '.join(zoo.candidates)}; alpha {alphas}; policy "
        f"{zoo.settings.policy}; labels {', '.join(_sources(zoo))})"
    )


def _promises(zoo: Zoo) -> Iterator[str]:
    """That of requests without a service level goes without a name."""
    for name, level in zoo.levels.items():
        yield f"{level.alpha:g}" if name == DEFAULT_LEVEL else f"{name} {level.alpha:g}"


def _sources(zoo: Zoo) -> Iterator[str]:
    """Where its labels come from: feedback always may."""
    labels = zoo.settings.labels
    yield "feedback"
    own = [name for name in OWN_CHECKS if getattr(labels.checks, name)]
    for name in (*own, *labels.checks.callables):
        yield f"check:{name}"
    if labels.judge is not None:
        yield f"judge {labels.judge.model}"
    if labels.implicit is not None:
        yield "implicit"
