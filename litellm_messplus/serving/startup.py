"""Start inside the proxy: the configuration, the database, the engines, then the plugin.

LiteLLM imports its callbacks from a plain function while its event loop already runs, so what
must be awaited before the first request (migrations, restoring the state) runs in a thread with a
loop of its own."""

import asyncio
import gc
import logging
import os
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from subprocess import Popen
from typing import Any

from sqlalchemy import make_url
from threadpoolctl import threadpool_limits

from litellm_messplus.brain.modes import LiveModes
from litellm_messplus.brain.opening import Opened, open_database
from litellm_messplus.core.encoder import Encoder
from litellm_messplus.core.engine import Engine
from litellm_messplus.encoders.lookup import load_encoder
from litellm_messplus.learning.keeper import Keeper
from litellm_messplus.learning.process import KnownEncoder, LearnerSettings
from litellm_messplus.runtime.counters import logger
from litellm_messplus.runtime.errors import DatabaseAwayError
from litellm_messplus.runtime.loading import version
from litellm_messplus.runtime.tasks import apart
from litellm_messplus.serving.checking import honoured, label_sources
from litellm_messplus.serving.composition import Parts
from litellm_messplus.serving.deployments import capabilities
from litellm_messplus.serving.deployments.metering import PromptTokens
from litellm_messplus.serving.litellm_seam import proxy_configuration
from litellm_messplus.serving.plugin import MessplusPlugin
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store.database import create_engine, without_passwords

# A start while the database is away: LiteLLM serves as without the plugin until it is reachable.


RETRY_SECONDS = 5.0

OpenDatabase = Callable[[], Coroutine[None, None, Opened]]
"""The function that opens the database and restores the engines, in any event loop."""


def join_later(plugin: MessplusPlugin, open_database: OpenDatabase) -> None:
    """Remove every zoo from the plugin until the database is reachable, then begin."""
    zoos, plugin.zoos = plugin.zoos, {}
    plugin.counters.add("database_awaited")

    async def join() -> None:
        opened = await _opened(plugin, open_database)
        plugin.parts.brain.begin_at(opened.position or 0)
        plugin.parts.brain.line_log.begin(opened.conversation_key)
        plugin.start()
        await _route(plugin, zoos, "the database is there")

    plugin.parts.tasks.start(join(), "joining")


def route_later(plugin: MessplusPlugin) -> None:
    """Remove every zoo from the plugin until a learner has published a state."""
    zoos, plugin.zoos = plugin.zoos, {}
    plugin.counters.failure("state_awaited", "no learner has published a state yet")
    work = _route(plugin, zoos, "a learner has published a state")
    plugin.parts.tasks.start(work, "state-awaited")


async def _route(plugin: MessplusPlugin, zoos: Mapping[str, Zoo], why: str) -> None:
    """Start to route these zoos, once there is a state to decide from."""
    await plugin.parts.brain.sink.has_state.wait()
    plugin.zoos = zoos
    logger.warning("%s: requests are routed from now on", why)


async def _opened(plugin: MessplusPlugin, open_database: OpenDatabase) -> Opened:
    """Open the database, and retry until it works; in a thread with a loop of its own, since a
    long log takes long to fold."""
    while True:
        await asyncio.sleep(RETRY_SECONDS)
        with plugin.counters.tolerated("database_awaited", "the database is not there yet"):
            return await asyncio.to_thread(lambda: asyncio.run(open_database()))


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
    """Build the plugin for the running proxy. ``launched`` is the learner's process, if it is
    loading already."""
    return _start(proxy_configuration(), launched)


def _start(config: Mapping[str, Any], launched: Popen[bytes] | None) -> MessplusPlugin:
    # Our matrices are small: on busy cores, BLAS threads cost far more time than they save.
    threadpool_limits(limits=1, user_api="blas")
    show_log()
    settings, zoos = honoured(config)
    encoder = load_encoder(settings.encoder)
    keeper = None
    if settings.learner == "process":
        keeper = Keeper(learner_settings(settings, zoos, encoder), launched)
    engines = {name: Engine(zoo, encoder, settings.seed) for name, zoo in zoos.items()}
    modes = LiveModes(settings.zoos)
    opened = _restored(settings, engines, modes, keeper)
    position = None if opened is None else opened.position
    database = create_engine(settings.database)
    prompt_tokens = PromptTokens(list(zoos), config.get("model_list") or [])
    prompt_tokens.warm_up()
    capabilities.warm_up(
        [each for each in config.get("model_list") or [] if each.get("model_name") in zoos]
    )
    plugin = MessplusPlugin(
        Parts(
            settings,
            encoder,
            engines,
            database,
            position or 0,
            prompt_tokens=prompt_tokens,
            modes=modes,
            keeper=keeper,
        )
    )
    if opened is None:
        join_later(plugin, partial(open_database, settings, engines, modes, keeper))
    else:
        plugin.parts.brain.line_log.begin(opened.conversation_key)
        plugin.start()
        if opened.position is None:
            route_later(plugin)
    plugin.attach()
    freeze_startup_objects()
    logger.info(
        banner(
            zoos,
            encoder=encoder.name,
            database=settings.database,
            position=position,
        )
    )
    return plugin


def learner_settings(
    settings: MessplusSettings, zoos: Mapping[str, Zoo], encoder: Encoder
) -> LearnerSettings:
    """Return what a learner of this proxy needs to know."""
    known = KnownEncoder(encoder.name, encoder.dimension, encoder.is_fast)
    database = make_url(settings.database)
    if database.get_backend_name() == "sqlite":  # as this process finds it
        database = database.set(database=os.path.abspath(database.database or ""))
    url = database.render_as_string(hide_password=False)
    return LearnerSettings(url, dict(zoos), known, settings.seed)


def _restored(
    settings: MessplusSettings,
    engines: dict[str, Engine],
    modes: LiveModes,
    keeper: Keeper | None,
) -> Opened | None:
    """Open the database; None if it does not answer now, since it may come back."""
    opening = open_database(settings, engines, modes, keeper)
    try:
        return apart(opening)
    except DatabaseAwayError as error:
        logger.warning("starting without the database, which is tried again: %s", error)
        return None
