"""Where the brain of a database is found, and what it is started with. Workers need this without
all that a brain needs."""

import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from litellm_messplus.runtime.database_url import file_of
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.settings.zoo import Zoo

TOKEN = "MESSPLUS_BRAIN_TOKEN"
"""The environment variable of the token that workers on other machines show."""
LONGEST_SOCKET = 100
"""The most characters of a socket's path, of 107 that the system allows."""


@dataclass(frozen=True)
class BrainSettings:
    """What a brain is started with: the settings, the configured zoos, where workers connect, and
    the folders from which the operator's own code is loaded."""

    settings: MessplusSettings
    zoos: Mapping[str, Zoo]
    address: Path | tuple[str, int]
    token: str = ""
    folders: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """A hash of the settings that workers and brain must agree on."""
        known = [self.settings.model_dump_json(), *sorted(self.zoos)]
        return blake2b("\0".join(known).encode(), digest_size=16).hexdigest()


def brain_settings(settings: MessplusSettings, zoos: Mapping[str, Zoo]) -> BrainSettings:
    """Return what the brain of this configuration is started with, and its workers connect by.

    Raises ConfigurationError for a brain over TCP without a token."""
    if file := file_of(settings.database):  # as this process finds it
        driver, _, path = settings.database.partition(":///")
        database = f"{driver}:///{os.path.abspath(file)}{path.removeprefix(file)}"
        settings = settings.model_copy(update={"database": database})
    address: Path | tuple[str, int]
    token = os.environ.get(TOKEN, "")
    if settings.brain.startswith("tcp://"):
        host, _, port = settings.brain.removeprefix("tcp://").partition(":")
        address = host, int(port)
        if not token:
            raise ConfigurationError(
                "messplus.brain", settings.brain, f"with a secret in {TOKEN}, the same everywhere"
            )
    else:
        address, token = shared_path(settings.database, "socket"), ""
    return BrainSettings(settings, dict(zoos), address, token, tuple(sys.path))


def shared_path(database: str, suffix: str) -> Path:
    """Return the path of a file that the workers of a machine share: next to a file of SQLite,
    else in a folder of this user's for temporary files; the first that is short enough."""
    name, own = blake2b(database.encode(), digest_size=16).hexdigest(), f"messplus-{os.getuid()}"
    places = [Path(each) / own / f"{name}-{suffix}" for each in (tempfile.gettempdir(), "/tmp")]
    if file := file_of(database):
        places.insert(0, Path(f"{file}-{suffix}"))
    path = next((each for each in places if len(str(each)) <= LONGEST_SOCKET), places[-1])
    if path.parent.name == own:
        path.parent.mkdir(mode=0o700, exist_ok=True)
    return path
