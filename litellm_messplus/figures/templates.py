"""Texts by Jinja templates, with the forms of `figures/words.py` as filters and functions."""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template, UndefinedError
from markupsafe import Markup

from litellm_messplus.figures import words


class Absent(StrictUndefined):
    """A name that is not there, which raises UndefinedError; what is in an unknown part is None."""

    def __new__(
        cls,
        hint: str | None = None,
        obj: Any = ...,
        name: str | None = None,
        exc: type[Exception] = UndefinedError,
    ) -> Any:
        return None if obj is None else super().__new__(cls)


def in_line(value: Any) -> Any:
    """Keep a text in its line and its cell, as it may be a client's, unless it is known as safe."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return "".join(each if each.isprintable() else " " for each in value).replace("¦", "|")


ENVIRONMENT = Environment(
    loader=PackageLoader("litellm_messplus", ""),
    undefined=Absent,
    finalize=in_line,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.filters |= {
    "figure": words.figure,
    "percent": words.percent,
    "count": "{:,.0f}".format,
    "ms": lambda seconds: words.figure(1000.0 * seconds, "ms"),
    "minute": "{:%Y-%m-%d %H:%M}".format,
    "moment": lambda at: words.moment(datetime.fromisoformat(at) if isinstance(at, str) else at),
}
ENVIRONMENT.globals |= {
    "around": words.percent_around,
    "interval": words.percent_range,
    "unknown": words.UNKNOWN,
}


@cache
def template(text: str) -> Template:
    """Compile a template once."""
    return ENVIRONMENT.from_string(text)


def written(text: str, found: Mapping[str, Any], **more: Any) -> str:
    """Fill a template with what stands in a part of the status, and ``more``."""
    return template(text).render(found, **more)


def filled(name: str, **found: Any) -> str:
    """Fill a template of the package, by its path."""
    return ENVIRONMENT.get_template(name).render(found)


AS_WRITTEN = ("|", "- ", "```")
"""Beginnings of what is not running text in a page of Markdown."""


def lines(name: str, **found: Any) -> list[str]:
    """Fill a template of the package: each paragraph that is not empty is a line, but for tables,
    lists and code."""
    paragraphs = (each.strip() for each in filled(name, **found).split("\n\n"))
    written = (
        each if each.startswith(AS_WRITTEN) else " ".join(each.split()) for each in paragraphs
    )
    return [each for each in written if each]
