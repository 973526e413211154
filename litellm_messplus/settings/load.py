"""From the proxy's parsed configuration to checked settings."""

import os
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from litellm_messplus.runtime.counters import logger
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.settings.schema import MessplusSettings

# The proxy's configuration file, for commands that run outside of the proxy.

VARIABLE = "os.environ/"
"""What LiteLLM puts a variable of the environment in the place of."""


def read_config(path: Path) -> Mapping[str, Any]:
    """Read the whole file. Variables are filled in as LiteLLM does; an unset one stays as written,
    because many (a provider's key) matter to the proxy alone.

    Raises ConfigurationError if it cannot be read.
    """
    try:
        found = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise ConfigurationError("--config", str(path), f"a proxy_config.yaml ({reason})") from None
    if not isinstance(found, dict):
        raise ConfigurationError("--config", str(path), "a proxy_config.yaml with sections in it")
    filled: dict[str, Any] = _filled(found)
    return filled


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _filled(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_filled(below) for below in value]
    if isinstance(value, str) and value.startswith(VARIABLE):
        return os.environ.get(value.removeprefix(VARIABLE), value)
    return value


SECTION = "messplus"
NEIGHBOURS = ("litellm_settings", "general_settings", "router_settings")
"""LiteLLM's own sections, below which ours is put by mistake."""


def load_settings(config: Mapping[str, object]) -> MessplusSettings:
    """Check the `messplus:` section of a whole proxy configuration, and return its settings.

    Raises ConfigurationError naming the first key that cannot be honoured.
    """
    section = config.get(SECTION)
    if not isinstance(section, Mapping):
        raise _no_section(config)
    section = _renamed(section)
    try:
        return MessplusSettings.model_validate(section)
    except ValidationError as error:
        raise _first_problem(error, section) from error


Key = tuple[str, ...]
DEPRECATED: Mapping[Key, str] = {}
"""Settings under the names of the minor version before, `*` standing for names that operators give,
and what to write. They are honoured until the next minor version, which moves them to `FORMER`."""


def _renamed(section: Mapping[str, Any], above: Key = ()) -> dict[str, Any]:
    """Return a section with deprecated settings under their new names, each with a warning. Raises
    ConfigurationError where a setting is given under both names."""
    found: dict[str, Any] = {}
    for name, value in section.items():
        key = (*above, str(name))
        new = next((new for old, new in DEPRECATED.items() if _is_of(key, old)), None)
        if new is not None:
            shown = ".".join([SECTION, *key])
            if new in section:
                raise ConfigurationError(shown, value, f"`{new}` alone, which took its place")
            logger.warning(
                "%s: write `%s`; the next minor version refuses the old name", shown, new
            )
        found[new or name] = _renamed(value, key) if isinstance(value, Mapping) else value
    return found


def _is_of(key: Key, pattern: Key) -> bool:
    """Tell whether a key is one that the pattern stands for."""
    pairs = zip(key, pattern, strict=False)
    return len(key) == len(pattern) and all(wild in ("*", name) for name, wild in pairs)


def _no_section(config: Mapping[str, object]) -> ConfigurationError:
    """Build the error, which names where the section stands instead, if it does."""
    for neighbour in NEIGHBOURS:
        found = config.get(neighbour)
        if isinstance(found, Mapping) and SECTION in found:
            return ConfigurationError(
                f"{neighbour}.{SECTION}",
                f"a section below `{neighbour}:`",
                f"`{SECTION}:` at the top level of the file, next to `{neighbour}:`",
            )
    return ConfigurationError(SECTION, config.get(SECTION), "a section with `zoos:` in it")


def _first_problem(error: ValidationError, section: Mapping[str, object]) -> ConfigurationError:
    problem = error.errors()[0]
    key = ".".join([SECTION, *map(str, problem["loc"])])
    if problem["type"] == "extra_forbidden":
        return ConfigurationError(key, problem["input"], _instead(problem["loc"]))
    given = "nothing" if problem["type"] == "missing" else problem["input"]
    return ConfigurationError(key, given, _allowed(problem))


def _allowed(problem: ErrorDetails) -> str:
    message = problem["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    bounds = {
        "alpha": "a share greater than 0 and less than 1",
        "V": "a number greater than 0",
        "c": "a number of at least 0",
        "response_bias": "a number greater than 0, which you state: no audit by the judge finds it",
    }
    words = {"tuple_type": "a list", "too_short": "at least one", "missing": "a required value"}
    name = str(problem["loc"][-1])
    if problem["type"] in ("model_type", "dict_type"):
        return "the word `auto`, or a section" if name == "labels" else "a section"
    return bounds.get(name, words.get(problem["type"], message))


FORMER: Mapping[str, str] = {
    "alerts": "`webhook` in place of `alerts.webhook`",
    "concurrent_explorations": "nothing: at most 16 at once, in one worker",
    "encoder_batch": "nothing: a slow encoder gets up to 16 prompts at once",
    "encoder_cache": "nothing: the features of 10,000 texts are kept",
    "encoder_wait_seconds": "nothing: a prompt waits 2 ms for others to be encoded with",
    "exploration_wait_seconds": "nothing: labels of an exploration are waited for ten minutes",
    "feedback_per_minute": "nothing: 600 verdicts of a key in a minute, to one worker",
    "judge_rate": "`label_rate` in place of `judge_rate`",
    "latency": "`p95_seconds` in place of `latency.p95_seconds`",
    "margin": "`confidence` in place of `margin`: what the certificate is to prove",
    "snapshot_every": "nothing: a snapshot is taken every 10,000 records",
    "start_without_database": "nothing: the proxy starts, and joins when the database answers",
    "checks.weight": "nothing: a label of a check counts 1",
    "implicit.weight": "nothing: such a label counts 0.3",
    "labels.auto": "`labels: auto`, and what differs from its defaults under `buy_labels`",
    "labels.judge": "`buy_labels: {how: grade, judge: NAME}` next to `labels`, and `label_rate`",
    "labels.key_influence": "`key_pull`: how far one key may move the satisfaction in a day",
    "labels.key_share": "`key_pull`: how far one key may move the satisfaction in a day",
    "labels.parity": "`buy_labels: {how: compare, judge: NAME}` next to `labels`, and `label_rate`",
    "retention.drop": "nothing: without an `archive`, what is pruned is deleted",
    "watch.decided_per_second": "nothing: five requests a second are decided in parallel",
}
"""Settings that there were once, by their section where that distinguishes them: what to write in
place of each."""


def _instead(location: Sequence[int | str]) -> str:
    """Name the replacement of an unknown key: for a former setting the one that replaced it, for
    another key the known keys, the nearest first."""
    name = str(location[-1])
    within = f"{location[-2]}.{name}" if len(location) > 1 else name
    if former := FORMER.get(within) or FORMER.get(name):
        return former
    known = _known_keys(location)
    nearest = get_close_matches(str(location[-1]), known, n=1)
    meant = f" (did you mean `{nearest[0]}`?)" if nearest else ""
    return f"no such key{meant}; known here: {', '.join(known)}"


def _known_keys(location: Sequence[int | str]) -> list[str]:
    """List the known keys of the section that contains the unknown one."""
    section: Any = MessplusSettings
    for key in location[:-1]:
        section = _below(section, key)
    return sorted(section.model_fields)


def _below(section: Any, key: int | str) -> Any:
    """Return the section under a key, or the dictionary or list of sections."""
    if get_origin(section) in (dict, tuple):
        return get_args(section)[1 if get_origin(section) is dict else 0]
    kind = section.model_fields[key].annotation
    if get_origin(kind) is UnionType:  # a section that may be left out
        return get_args(kind)[0]
    return kind
