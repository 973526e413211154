"""What routing adds to a request: from the entry of the hook to its return, with writing on.

    python -m benchmarks.decision_time

The real plugin on a real SQLite file, with the embedded encoder and a prompt of about 200 tokens;
only LiteLLM around it is left out. The budget is 0.5 ms in the median.
"""

import asyncio
import os
import statistics
import tempfile
import time
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no download at import

from litellm_messplus.engine import Engine
from litellm_messplus.prediction.hashed_ngrams import HashedNgrams
from litellm_messplus.proxy.plugin import MessplusPlugin
from litellm_messplus.proxy.zoos import build_zoos
from litellm_messplus.restore import restore
from litellm_messplus.settings.load import load_settings
from litellm_messplus.store.database import create_engine, migrate

REQUESTS = 3000
BUDGET_MILLISECONDS = 0.5
PROMPT = "Please answer the question below as a careful expert would, step by step. " * 14


def configuration(folder: Path) -> dict[str, Any]:
    models = [("small", 1e-7), ("small", 1e-7), ("medium", 1e-6), ("large", 1e-5)]
    return {
        "model_list": [
            {
                "model_name": "zoo",
                "litellm_params": {"model": f"openai/{model}"},
                "model_info": {
                    "id": f"{model}-{number}",
                    "input_cost_per_token": price,
                    "output_cost_per_token": price,
                },
            }
            for number, (model, price) in enumerate(models)
        ],
        "messplus": {
            "database": f"sqlite+aiosqlite:///{folder}/messplus.db",
            "zoos": {"zoo": {"alpha": 0.8}},
        },
    }


async def measure(folder: Path) -> list[float]:
    """Milliseconds of each decision."""
    config = configuration(folder)
    settings = load_settings(config)
    zoos = build_zoos(settings, config["model_list"])
    encoder = HashedNgrams()
    engines = {name: Engine(zoo, encoder, settings.seed) for name, zoo in zoos.items()}
    engines["zoo"].state.requests["default"] = 1  # the first request explores, and calls
    database = create_engine(settings.database)
    await migrate(database)
    position = await restore(database, engines)
    plugin = MessplusPlugin(settings, encoder, engines, database, position)
    plugin.start()
    milliseconds = []
    for number in range(REQUESTS):
        messages = [{"role": "user", "content": f"{PROMPT} {number}"}]
        arguments = {
            "litellm_call_id": uuid.uuid4().hex,
            "litellm_logging_obj": SimpleNamespace(call_type="acompletion"),
            "metadata": {"user_api_key_hash": "key"},
        }
        started = time.perf_counter()
        await plugin.async_filter_deployments("zoo", config["model_list"], messages, arguments)
        milliseconds.append((time.perf_counter() - started) * 1000)
        await asyncio.sleep(0.001)  # lets the journal write, as other requests would
    await plugin.close()
    failed = {name: count for name, count in plugin.counters.as_dict().items() if count}
    if failed:
        raise SystemExit(f"not a measurement: {failed}")
    return milliseconds


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        milliseconds = sorted(asyncio.run(measure(Path(folder))))
    median = statistics.median(milliseconds)
    print(f"decisions            {len(milliseconds)}")
    print(f"median               {median:.3f} ms (budget {BUDGET_MILLISECONDS} ms)")
    for share in (0.9, 0.99):
        print(f"{share:.0%} at most         {milliseconds[int(share * len(milliseconds))]:.3f} ms")
    raise SystemExit(median > BUDGET_MILLISECONDS)


if __name__ == "__main__":
    main()
