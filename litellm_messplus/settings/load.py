"""From the proxy's parsed configuration to checked settings."""

import os
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

import yaml
from dotenv import load_dotenv
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.settings.schema import MessplusSettings

# The proxy's configuration, as LiteLLM reads it; before LiteLLM is loaded, one file of it.

VARIABLE = "os.environ/"
"""What LiteLLM puts a variable of the environment in the place of."""


def read_file(path: Path) -> dict[str, Any]:
    """Read one file as it is written. Raises ConfigurationError if it cannot be read."""
    try:
        found = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise unreadable(path, error) from None
    if not isinstance(found, dict):
        raise ConfigurationError("--config", str(path), "a proxy_config.yaml with sections in it")
    return found


def unreadable(path: Path, error: Exception) -> ConfigurationError:
    """Build the error of a configuration that cannot be read."""
    reason = " ".join(str(error).split())
    return ConfigurationError("--config", str(path), f"a proxy_config.yaml ({reason})")


def with_variables(
    config: Mapping[str, Any], written: Mapping[str, Any], known: Callable[[str], Any]
) -> dict[str, Any]:
    """Return a configuration, with our section as it is ``written`` and its variables filled in:
    those of `environment_variables:`, which overrule the environment, then those that are
    ``known``.

    What LiteLLM has read does not show our section so: it fills in variables first, and only then
    sets those of the file. A reference to one of them is None by then, as is one to a variable
    that is not set, which is to be named.

    Raises ConfigurationError for a variable that is not set.
    """
    own = {
        name: os.environ.get(str(value).removeprefix(VARIABLE), str(value))
        for name, value in section_of(written, VARIABLES).items()
    }
    section = _filled(SECTION, written.get(SECTION), lambda name: own.get(name) or known(name))
    return {**config, SECTION: section}


def _filled(key: str, value: Any, known: Callable[[str], Any]) -> Any:
    """Fill in the variables of a value under a ``key``. LiteLLM passes over those that stand in a
    list of its own sections; ours are filled in everywhere."""
    if isinstance(value, Mapping):
        return {name: _filled(f"{key}.{name}", below, known) for name, below in value.items()}
    if isinstance(value, list):
        return [_filled(f"{key}.{place}", below, known) for place, below in enumerate(value)]
    if not isinstance(value, str) or not value.startswith(VARIABLE):
        return value
    if (found := known(value.removeprefix(VARIABLE))) is None:
        allowed = f"a variable that is set, in the environment or below `{VARIABLES}:`"
        raise ConfigurationError(key, value, allowed)
    return found


SECTION, VARIABLES = "messplus", "environment_variables"
NEIGHBOURS = ("litellm_settings", "general_settings", "router_settings")
"""LiteLLM's own sections, below which ours is put by mistake."""


def section_of(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a section, empty if it is not there."""
    found = config.get(name)
    return found if isinstance(found, Mapping) else {}


# What LiteLLM needs to start at all, and with the plugin.

CALLBACK = "litellm_messplus.plugin.instance"
"""The name that `litellm_settings.callbacks` must list, or LiteLLM never loads the plugin."""
MASTER_KEY = "LITELLM_MASTER_KEY"
KNOWN_KEY = "sk-1234"
"""The master key that everybody knows."""
PERMIT = "dangerously_permit_weak_or_unset_master_key"


def check_start(config: Mapping[str, Any]) -> None:
    """Raise ConfigurationError if LiteLLM would not load the plugin, or refuse its master key.

    LiteLLM takes the key from `general_settings`, where a key that is there but names no variable
    that is set counts as none; else from the environment. It refuses to start without a key, with
    an empty one, and with one of those that everybody knows, unless it is told to permit them.
    """
    callbacks = section_of(config, "litellm_settings").get("callbacks") or []
    given = [callbacks] if isinstance(callbacks, str) else list(callbacks)
    if CALLBACK not in given:
        raise ConfigurationError(
            "litellm_settings.callbacks", given, f"a list with {CALLBACK}, which loads the plugin"
        )
    general = section_of(config, "general_settings")
    known = {**section_of(config, VARIABLES), **os.environ}
    key = str(general.get("master_key", known.get(MASTER_KEY)) or "")
    if key.startswith(VARIABLE):
        key = os.environ.get(key.removeprefix(VARIABLE), "")
    permit = general.get(PERMIT) or os.environ.get(f"LITELLM_{PERMIT.upper()}")
    if key.strip() in ("", KNOWN_KEY) and str(permit).lower() != "true":
        raise ConfigurationError(
            "general_settings.master_key",
            "a key that everybody knows" if key.strip() else "none",
            f"a strong key, here or in {MASTER_KEY}: LiteLLM does not start without",
        )


def settings_alone(path: Path) -> MessplusSettings | None:
    """Return the settings in a file, read without LiteLLM; None if that cannot read all of it, as
    where files are included, or secrets are kept elsewhere.

    Raises ConfigurationError for what a start would refuse, as far as that is known then.
    """
    load_dotenv()  # as LiteLLM does where it is imported, unless LITELLM_MODE is PRODUCTION
    config = read_file(path)
    is_hosted = "key_management_system" in section_of(config, "general_settings")
    if is_hosted or "include" in config or "LITELLM_CONFIG_BUCKET_NAME" in os.environ:
        return None
    check_start(config)
    return load_settings(with_variables(config, config, os.environ.get))


def load_settings(config: Mapping[str, object]) -> MessplusSettings:
    """Check the `messplus:` section of a whole proxy configuration, and return its settings.

    Raises ConfigurationError naming the first key that cannot be honoured.
    """
    section = config.get(SECTION)
    if not isinstance(section, Mapping):
        raise _no_section(config)
    try:
        return MessplusSettings.model_validate(section)
    except ValidationError as error:
        raise _first_problem(error, section) from error


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
    "answer_logprobs": "`answer_score`: a function of your own that sees the whole response",
    "archive": "`COPY` or DuckDB before the rows are deleted: docs/recipes.md",
    "budget_per_day": "LiteLLM's budgets of a key, a team, a tag or a provider: docs/recipes.md",
    "carbon_per_kwh": "nothing: joules times what your supplier states",
    "charge_explorations": "nothing: exploration calls are on no caller's key",
    "concurrent": "nothing: two gradings under way at once, in one worker",
    "failures": "nothing: a failed request is a figure of its own, in no share of satisfied ones",
    "first": "LiteLLM's tags of deployments and keys",
    "gradings_per_day": "`label_rate`, or `buy_labels.budget_per_day`",
    "gpus": "`energy_profile`: what `messplus profile` has measured",
    "implicit": "feedback, `checks` or `labels: auto`",
    "label_noise": "nothing: verdicts are taken as they are",
    "momentum": "nothing: 0.9, as in the paper",
    "p95_seconds": "LiteLLM's `timeout`, and its `latency-based-routing` among replicas",
    "teams": "nothing: a team's own models under the zoo's name are not routed",
    "timeout_seconds": "nothing: a check of your own has 5 seconds, a grading has 60",
    "unit": "nothing: a verdict on a conversation counts for its last answer",
    "unmet": "nothing: a request chooses a service level by `callers_may`, and no other limit",
    "webhook": "Alertmanager, with deploy/prometheus-rules.yml",
    "weight_decay": "nothing: 0.01, as in the paper",
    "zeusd": "`energy_profile`: what `messplus profile` has measured",
}
"""Settings that there are no more, by their section where that distinguishes them: what to use in
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
