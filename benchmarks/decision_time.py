"""What routing adds to a request: from the entry of the hook to its return, with writing on.

    python -m benchmarks.decision_time [--models 3] [--judged 0] [--characters 0] [--hold warm]

The real plugin on a real SQLite file, with the embedded encoder and a prompt of about 200 tokens;
only LiteLLM around it is left out. The zoo first learns ``--judged`` answers in which difficulty
depends on the prompt, so that it decides by the plan. The budget is 0.5 ms in the median. With
``--characters``, the requests are those of tool loops with prompts of that length, and
``--hold never`` shows what holding them adds.
"""

import argparse
import asyncio
import math
import os
import statistics
import tempfile
import time
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no download at import

from threadpoolctl import threadpool_limits

from litellm_messplus.brain.brain import Brain
from litellm_messplus.brain.opening import Opened
from litellm_messplus.core.adaptive_policy import AdaptivePolicy
from litellm_messplus.core.encoder import Conversation
from litellm_messplus.core.engine import Engine
from litellm_messplus.core.entries import Example, Settled
from litellm_messplus.core.hashed_ngrams import HashedNgrams
from litellm_messplus.core.surface import read_surface
from litellm_messplus.core.verdict import Given
from litellm_messplus.restore import restore
from litellm_messplus.runtime.vocabulary import LabelKind
from litellm_messplus.serving import startup
from litellm_messplus.serving.composition import Parts
from litellm_messplus.serving.deployments.index import build_zoos
from litellm_messplus.serving.inside import BrainInside
from litellm_messplus.serving.plugin import MessplusPlugin
from litellm_messplus.serving.worker_hands import WorkerHands
from litellm_messplus.settings.load import load_settings
from litellm_messplus.store.answered import read_conversation_key
from litellm_messplus.store.database import create_engine, migrate

REQUESTS = 3000
BUDGET_MILLISECONDS = 0.5
PROMPT = "Please answer the question below as a careful expert would, step by step. " * 14


def configuration(folder: Path, models: int, hold: str = "warm") -> dict[str, Any]:
    """Write the configuration of a zoo of so many models, the first of which has two replicas."""
    named = [("model-0", 1e-7), *((f"model-{place}", 1e-7 * 3**place) for place in range(models))]
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
            for number, (model, price) in enumerate(named)
        ],
        "messplus": {
            "deadline_seconds": 5.0,
            "database": f"sqlite+aiosqlite:///{folder}/messplus.db",
            "zoos": {"zoo": {"alpha": 0.8, "conversations": {"hold": hold}}},
        },
    }


TURNS = 40
"""Turns of a tool loop when its requests begin to be measured."""
LOOP = 10
"""Measured requests per loop."""


def messages_of(number: int, characters: int) -> list[dict[str, Any]]:
    """Write the prompt of a request: a question, or the next step of an agent's tool loop."""
    if characters == 0:
        return [{"role": "user", "content": f"{PROMPT} {number}"}]
    loop, step = divmod(number, LOOP)
    words = "x" * (characters // TURNS)
    prompt: list[dict[str, Any]] = [{"role": "user", "content": f"{words} {loop}"}]
    for place in range(TURNS // 2 + step):
        function = {"name": "bash", "arguments": f"{words} {place}"}
        name = f"call-{loop}-{place}"
        call = {"id": name, "type": "function", "function": function}
        prompt.append({"role": "assistant", "content": None, "tool_calls": [call]})
        prompt.append({"role": "tool", "tool_call_id": name, "content": f"{words} {place}"})
    return prompt


def teach(engine: Engine, judged: int) -> None:
    """Teach each model in turn, on prompts of 1 to 40 numbers: later models in the zoo are more
    capable."""
    models, encoder = engine.zoo.candidates, HashedNgrams()
    for number in range(judged):
        length, place = 1 + number * 7 % 40, number % len(models)
        conversation = Conversation.of_text("sort " + "17 " * length)
        features = encoder.encode([encoder.read(conversation)])[0]
        example = Example(
            f"taught-{number}",
            engine.encoder.name,
            features,
            models[place],
            False,
            read_surface(conversation),
        )
        value = float(length < 40 * (place + 1) / len(models))
        given = (Given(LabelKind.FEEDBACK, "made", value),)
        sizes = (3 * length, 1.0 * length, 3.0 * length)
        call_id = f"taught-{number}.0"
        engine.apply(Settled(0, "zoo", call_id, models[place], *sizes, example, given))
    if isinstance(engine.state.policy, AdaptivePolicy):  # there is no model for unseen calls
        engine.state.policy.unseen.made = math.inf


async def begun(config: dict[str, Any], judged: int) -> MessplusPlugin:
    """Start the plugin on an empty database, after so many judged answers."""
    settings = load_settings(config)
    zoos = build_zoos(settings, config["model_list"])
    encoder = HashedNgrams()
    engines = {name: Engine(zoo, encoder, settings.seed) for name, zoo in zoos.items()}
    teach(engines["zoo"], judged)
    database = create_engine(settings.database)
    await migrate(database)
    position = await restore(database, engines)
    brain = Brain(settings, encoder, engines, database)
    brain.begin(Opened(position, await read_conversation_key(database)))
    plugin = MessplusPlugin(Parts(settings, BrainInside(brain, WorkerHands(zoos))))
    plugin.start()
    return plugin


def arguments_of_a_request() -> dict[str, Any]:
    """Make the arguments that LiteLLM's router passes in addition to the messages."""
    return {
        "litellm_call_id": uuid.uuid4().hex,
        "litellm_logging_obj": SimpleNamespace(call_type="acompletion"),
        "metadata": {"user_api_key_hash": "key"},
    }


async def answered(plugin: MessplusPlugin, arguments: dict[str, Any]) -> None:
    """Report the deployment, the first replica, as LiteLLM does before an answer goes out."""
    info = {"model_info": {"id": "model-0-0"}}
    await plugin.async_post_call_response_headers_hook(arguments, None, {}, None, info)


async def measure(
    folder: Path, models: int, judged: int, characters: int, hold: str
) -> list[float]:
    """Measure the milliseconds of each decision."""
    config = configuration(folder, models, hold)
    plugin = await begun(config, judged)
    startup.freeze_startup_objects()  # as at the proxy's start
    milliseconds = []
    for number in range(REQUESTS):
        messages, arguments = messages_of(number, characters), arguments_of_a_request()
        started = time.perf_counter()
        await plugin.async_filter_deployments("zoo", config["model_list"], messages, arguments)
        milliseconds.append((time.perf_counter() - started) * 1000)
        await answered(plugin, arguments)
        await asyncio.sleep(0.001)  # lets the journal write, as between real requests
    await plugin.close()
    counted = plugin.counters.as_dict()
    counted.pop("holds_unknown", None)  # from a loop's first request, which starts mid-loop
    failed = {name: count for name, count in counted.items() if count}
    if failed:
        raise SystemExit(f"not a measurement: {failed}")
    return milliseconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=int, default=3, help="Of the zoo, at least 2.")
    parser.add_argument("--judged", type=int, default=0, help="Answers judged before.")
    parser.add_argument("--characters", type=int, default=0, help="Of a tool loop's prompt.")
    parser.add_argument("--hold", default="warm", help="never, tool_loop or warm.")
    given = parser.parse_args()
    threadpool_limits(limits=1, user_api="blas")  # as at the proxy's start
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(Path(folder), given.models, given.judged, given.characters, given.hold)
        milliseconds = sorted(asyncio.run(measured))
    median = statistics.median(milliseconds)
    print(f"decisions            {len(milliseconds)}")
    print(f"median               {median:.3f} ms (budget {BUDGET_MILLISECONDS} ms)")
    for share in (0.9, 0.99):
        print(f"{share:.0%} at most         {milliseconds[int(share * len(milliseconds))]:.3f} ms")
    raise SystemExit(median > BUDGET_MILLISECONDS)


if __name__ == "__main__":
    main()
