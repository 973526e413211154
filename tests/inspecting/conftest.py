"""A seeded database whose estimates, prices and prompts differ from request to request."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from litellm_messplus.core.encoder import Conversation
from litellm_messplus.core.surface import VERSION, read_surface
from litellm_messplus.records import RequestRecord
from tests.support.history import CANDIDATES, History, migrated
from tests.support.seeded import seeded


def _varied(request: RequestRecord, random: Random) -> RequestRecord:
    """With estimates, price, queue and prompt of its own; every tenth of policy `paper`."""
    names = random.sample(CANDIDATES, random.randint(1, len(CANDIDATES)))
    words = " ".join(str(random.randint(0, 999)) for _ in range(random.randint(0, 40)))
    is_paper = random.random() < 0.1
    return replace(
        request,
        policy="paper" if is_paper else "adaptive",
        estimated_cost={name: random.lognormvariate(-5.0, 1.5) for name in names},
        estimated_satisfaction={name: random.random() for name in names},
        price=None if is_paper else random.lognormvariate(-4.0, 2.0),
        queue=random.gauss(0.0, 3.0),
        aim=request.alpha + random.random() / 100.0,
        propensity=random.random(),
        exploration_calls=random.choice((0, 0, 1)),
        surface=read_surface(Conversation.of_text(words)),
        surface_version=VERSION,
    )


@pytest.fixture(scope="session")
def recorded() -> History:
    random, history = Random(7), seeded()
    history.requests = [_varied(request, random) for request in history.requests]
    return history


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory, recorded: History) -> Path:
    path = tmp_path_factory.mktemp("inspecting") / "log.db"
    migrated(path, recorded)
    return path
