"""Start inside the proxy: the configuration, the way to the brain, then the plugin.

LiteLLM imports its callbacks from a plain function while its event loop already runs, so what
must be awaited before the first request runs in a thread with a loop of its own. While the database
or the brain is away, LiteLLM serves as without the plugin."""

import gc
import logging
import os
import time
from collections.abc import Mapping
from subprocess import Popen
from typing import Any

from threadpoolctl import threadpool_limits

from litellm_messplus.brain.keeper import BrainGoneError, Keeper
from litellm_messplus.brain.place import BrainSettings, brain_settings
from litellm_messplus.runtime.counters import logger
from litellm_messplus.runtime.database_url import without_passwords
from litellm_messplus.runtime.errors import ConfigurationError, DatabaseAwayError
from litellm_messplus.runtime.loading import version
from litellm_messplus.runtime.tasks import apart
from litellm_messplus.serving.composition import BrainApart, Parts
from litellm_messplus.serving.configuration import honoured, label_sources
from litellm_messplus.serving.deployments import capabilities
from litellm_messplus.serving.deployments.metering import PromptTokens
from litellm_messplus.serving.link import reach
from litellm_messplus.serving.litellm_seam import proxy_configuration
from litellm_messplus.serving.plugin import MessplusPlugin
from litellm_messplus.serving.worker_hands import WorkerHands
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.settings.zoo import Zoo

FIRST_SECONDS = 30.0
"""Seconds that a start waits for a brain that another worker has started."""
LOOK_SECONDS = 1.0
"""Seconds of each try to reach it, before one is started."""


# One line in the proxy's log at its start: what is configured.

FORMAT = "%(asctime)s - messplus:%(levelname)s: %(message)s"
TIME = "%H:%M:%S"
"""The time format; it and ``FORMAT`` are those of LiteLLM's own lines."""


def show_log(package: logging.Logger = logger) -> None:
    """Show log lines of level INFO, on stderr if no logging is set up.

    LiteLLM sets up only its own loggers. A level that is already set for ours is kept.
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
) -> str:
    """Format the line of the start. ``position`` is the end of the log, None while the database is
    away."""
    end = "which is away" if position is None else f"log at {position}"
    return (
        f"litellm-messplus {version()}: {'; '.join(map(_zoo, zoos.values()))}; encoder {encoder}; "
        f"database {without_passwords(database)}, {end}"
    )


def _zoo(zoo: Zoo) -> str:
    alphas = ", ".join(f"{name} {level.alpha:g}" for name, level in zoo.levels.items())
    return (
        f"zoo {zoo.name} ({', '.join(zoo.candidates)}; alpha {alphas}; policy "
        f"{zoo.settings.policy}; labels {', '.join(label_sources(zoo.settings))})"
    )


# The garbage collector's runs, kept short and rare while requests wait.
#
# A run stops the event loop. LiteLLM's modules alone are 800,000 objects, and a full run over them
# takes 0.1 to 0.4 s: a decision during it misses its deadline. Frozen objects are skipped, but
# Python then compares with the few objects left, and with its default threshold full runs come
# more often: they took 3 to 5 % of the proxy's CPU, and 1.6 % in LiteLLM without the plugin. So
# the threshold is raised as well, which leaves 0.5 %.

OPERATORS = "PYTHON_GC_THRESHOLD"
"""LiteLLM's own setting of the thresholds; if it is set, it is kept."""
YOUNG = 5_000
"""Number of objects allocated and not yet freed that triggers a run: more than the requests in
flight hold, so that most are freed without one. Uncollected garbage stays at some MiB."""


def freeze_startup_objects() -> None:
    """Exclude all objects loaded so far from garbage collection, and make its runs rarer."""
    gc.collect()
    gc.freeze()
    if not os.environ.get(OPERATORS):
        _, middle, old = gc.get_threshold()
        gc.set_threshold(YOUNG, middle, old)


def start(launched: Popen[bytes] | None) -> MessplusPlugin:
    """Build the plugin for the running proxy. ``launched`` is the brain's process, if it is
    loading already."""
    return _start(proxy_configuration(), launched)


def _start(config: Mapping[str, Any], launched: Popen[bytes] | None) -> MessplusPlugin:
    # Our matrices are small: on busy cores, BLAS threads cost far more time than they save.
    threadpool_limits(limits=1, user_api="blas")
    show_log()
    settings, zoos = honoured(config)
    models = config.get("model_list") or []
    prompt_tokens = PromptTokens(list(zoos), models)
    prompt_tokens.warm_up()
    capabilities.warm_up([each for each in models if each.get("model_name") in zoos])
    hands = WorkerHands(zoos)
    if settings.brain == "inside":
        # With all that a brain needs, which a worker beside its brain never loads.
        from litellm_messplus.serving.inside import started

        plugin, position = started(settings, zoos, hands, prompt_tokens)
    else:
        plugin, position = _apart(settings, zoos, hands, prompt_tokens, launched)
    plugin.attach()
    freeze_startup_objects()
    logger.info(
        banner(
            zoos,
            encoder=settings.encoder,
            database=settings.database,
            position=position,
        )
    )
    return plugin


def _apart(
    settings: MessplusSettings,
    zoos: Mapping[str, Zoo],
    hands: WorkerHands,
    prompt_tokens: PromptTokens,
    launched: Popen[bytes] | None,
) -> tuple[MessplusPlugin, int | None]:
    """Build and start the plugin with the brain in another process; return it with the end of the
    log, None while the database or the brain is away."""
    given = brain_settings(settings, zoos)
    keeper = Keeper(given, launched) if settings.brain == "process" else None
    position = None
    try:
        position = _reached(given, keeper)
        if position is None and keeper is not None:
            raise ConfigurationError(
                "messplus.brain",
                settings.brain,
                "`tcp://host:port`, for the brain of this database runs on another machine",
            )
    except DatabaseAwayError as error:
        logger.warning("starting without the database, which is tried again: %s", error)
    except BrainGoneError as error:
        logger.warning("starting without the brain, which is tried again: %s", error)
    way = BrainApart(given, hands, keeper)
    plugin = MessplusPlugin(Parts(settings, way, prompt_tokens))
    plugin.start()
    if position is None:
        plugin.route_later(way.link.connected, "the brain answers")
    return plugin, position


def _reached(given: BrainSettings, keeper: Keeper | None) -> int | None:
    """Return the end of the log of the brain, which the keeper starts if none runs; None if none
    answers. An earlier one may be about to end."""
    ends = time.monotonic() + FIRST_SECONDS
    while True:
        if keeper is not None:
            keeper.begin()
        is_last = keeper is None or time.monotonic() > ends
        try:
            position = apart(reach(given, LOOK_SECONDS))
        except ConfigurationError:
            if is_last:
                raise
            continue
        if position is not None or is_last:
            return position
