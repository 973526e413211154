"""What holding conversations adds to a decision, in pairs: the same request, held and not.

    python -m benchmarks.holding_time [--rounds 600]

Two plugins in one process, `hold: warm` and `hold: never`, get the same requests of tool loops in
turn, and the CPU time of each decision is measured. The budgets are 0.2 ms more at 48,000
characters in 50 messages, and 1.5 ms more at 416,000, in the median of the differences.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no download at import

from threadpoolctl import threadpool_limits

from benchmarks.decision_time import (
    answered,
    arguments_of_a_request,
    begun,
    configuration,
    messages_of,
)
from litellm_messplus.serving import startup
from litellm_messplus.serving.plugin import MessplusPlugin

CASES = ((0, 0.2), (48_000, 0.2), (416_000, 1.5))
"""Characters of a prompt, and the budget in milliseconds."""


async def decided(
    plugin: MessplusPlugin, deployments: list[Any], messages: list[dict[str, Any]]
) -> float:
    """Measure the milliseconds of CPU of one decision, which waits for nothing."""
    arguments = arguments_of_a_request()
    started = time.thread_time()
    await plugin.async_filter_deployments("zoo", deployments, messages, arguments)
    taken = (time.thread_time() - started) * 1000
    await answered(plugin, arguments)
    return taken


async def differences(folder: Path, characters: int, rounds: int) -> tuple[list[float], float]:
    """Measure the extra time of each decision if it is held, and the median without holding."""
    plugins = []
    for hold in ("warm", "never"):
        own = folder / f"{hold}-{characters}"
        own.mkdir()
        config = configuration(own, 3, hold)
        plugins.append((await begun(config, 0), config["model_list"]))
    startup.freeze_startup_objects()  # as at the proxy's start
    more, without = [], []
    for number in range(rounds):
        messages = messages_of(number, characters)
        pairs = plugins if number % 2 else plugins[::-1]
        taken = {
            id(plugin): await decided(plugin, deployments, messages)
            for plugin, deployments in pairs
        }
        held, never = (taken[id(plugin)] for plugin, _ in plugins)
        more.append(held - never)
        without.append(never)
        await asyncio.sleep(0.002)  # lets the journals write, as between real requests
    for plugin, _ in plugins:
        await plugin.close()
    return more, statistics.median(without)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=600, help="Pairs of each length.")
    given = parser.parse_args()
    threadpool_limits(limits=1, user_api="blas")  # as at the proxy's start
    is_over = False
    for characters, budget in CASES:
        with tempfile.TemporaryDirectory() as folder:
            measured = differences(Path(folder), characters, given.rounds)
            more, without = asyncio.run(measured)
        median = statistics.median(more)
        is_over |= median > budget
        print(
            f"{characters:>7,} characters  {median:+.3f} ms (budget {budget} ms), "
            f"against {without:.3f} ms"
        )
    raise SystemExit(is_over)


if __name__ == "__main__":
    main()
