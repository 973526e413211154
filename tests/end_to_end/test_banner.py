"""A start says in the proxy's log what is on, as an operator starts it: with LiteLLM's defaults."""

from pathlib import Path

import pytest

from litellm_messplus.runtime.loading import version
from tests.support.proxy import Proxy, zoo_config

pytestmark = pytest.mark.end_to_end


def test_a_start_says_what_is_on(tmp_path: Path) -> None:
    proxy = Proxy(zoo_config("http://127.0.0.1:9/v1", tmp_path), tmp_path).start()
    proxy.stop()

    (line,) = [line for line in proxy.log.splitlines() if "messplus:INFO: litellm-messplus" in line]
    for words in (
        f"litellm-messplus {version()}: zoo zoo (openai/tiny, openai/middle, openai/huge; ",
        "alpha 0.7; policy paper; labels feedback)",
        "encoder hashed-ngrams",
        f"database sqlite+aiosqlite:///{tmp_path}/messplus.db, log at 0",
        "energy not measured",
    ):
        assert words in line
