"""What a configuration makes of a log: its zoos, each with a fresh engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from threadpoolctl import threadpool_limits

from litellm_messplus.encoders.lookup import load_encoder
from litellm_messplus.engine import Engine
from litellm_messplus.settings.file import read_config
from litellm_messplus.settings.load import load_settings


@dataclass(frozen=True, slots=True)
class Configured:
    """The database that a proxy with it would open, and its engines before the first entry."""

    database: str
    engines: Mapping[str, Engine]


def read_configured(path: Path) -> Configured:
    """As the proxy starts with it. Raises ConfigurationError where it could not."""
    from litellm_messplus.proxy.zoos import build_zoos  # LiteLLM takes seconds to import

    # As the proxy does: with more threads, sums round otherwise.
    threadpool_limits(limits=1, user_api="blas")
    config = read_config(path)
    settings = load_settings(config)
    zoos = build_zoos(settings, config.get("model_list") or [])
    encoder = load_encoder(settings.encoder)
    engines = {name: Engine(zoo, encoder, settings.seed) for name, zoo in zoos.items()}
    return Configured(settings.database, engines)
