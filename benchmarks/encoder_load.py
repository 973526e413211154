"""One proxy worker under load with a slow encoder, compared with the embedded encoder.

    python -m benchmarks.encoder_load [ROUNDS [LAYERS]]

The encoder is a ModernBERT-base of random weights, built here: nothing is downloaded, and its speed
is that of the real one. With fewer layers than its 22 it is fast enough to be waited for. Every
prompt is new and about 200 tokens long. The two proxies take turns. The client and the upstream,
normally on other machines, run at lower priority.
"""

import asyncio
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from transformers import ModernBertConfig, ModernBertModel, PreTrainedTokenizerFast

from benchmarks.histogram import EDGES
from benchmarks.throughput import Slice, shown, slice_of, upstream
from litellm_messplus.encoders.lookup import load_encoder
from tests.support.proxy import Proxy, zoo_config
from tests.support.tiny_encoder import build_tokenizer

PROMPT = "Answer the question below as a careful expert would, step by step, and say it short. " * 2
"""With the tests' tokenizer, a letter is a token."""
DEADLINE_SECONDS = 0.05
SLICE_SECONDS = 4.0
LAYERS = 22
NICENESS = 5
BATCHES = (1, 4, 16)
MONITORED = {
    "ours": "we held the loop",
    "ours_cpu": "of that on a CPU",
    "late": "the loop was late",
    "collections": "garbage collected",
}
"""The second excludes time that the machine gave to others; the third includes LiteLLM's own."""


def save_modernbert_base(folder: Path, layers: int) -> Path:
    """Save a model of the shape of answerdotai/ModernBERT-base, which is the default configuration
    in transformers."""
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=build_tokenizer(), pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]"
    )
    ModernBertModel(ModernBertConfig(num_hidden_layers=layers)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def measure_encoder(folder: Path) -> None:
    """Print the time of a batch, alone on the machine."""
    encoder = load_encoder(str(folder))
    device = "a GPU" if torch.cuda.is_available() else f"{torch.get_num_threads()} CPU threads"
    for size in BATCHES:
        texts = [f"{number} {PROMPT}" for number in range(size)]
        encoder.encode(texts)
        seconds = []
        for _ in range(5):
            started = time.perf_counter()
            encoder.encode(texts)
            seconds.append(time.perf_counter() - started)
        median = statistics.median(seconds)
        print(
            f"encoder alone on {device}, batch of {size:2}: {median * 1000:7.1f} ms, "
            f"{size / median:6.1f} prompts/s",
            flush=True,
        )


def start(url: str, folder: Path, encoder: str) -> Proxy:
    folder.mkdir()
    config = zoo_config(
        url, folder, zoo={"alpha": 0.8}, encoder=encoder, deadline_seconds=DEADLINE_SECONDS
    )
    config["litellm_settings"]["callbacks"] = ["monitored.instance"]
    root = Path(__file__).parents[1]
    (folder / "monitored.py").write_text(
        f"import sys\n\nsys.path.insert(0, {str(root)!r})\n"
        "from benchmarks.loop_monitor import instance\n"
    )
    return Proxy(config, folder).start()


def compare(slow: Path, rounds: int, folder: Path) -> list[list[Slice]]:
    """Measure slices of both proxies, a pair a round; the first round warms up."""
    with upstream(NICENESS) as url:
        encoders = {"slow": str(slow), "embedded": "hashed-ngrams"}
        proxies = [start(url, folder / name, encoder) for name, encoder in encoders.items()]
        os.nice(NICENESS)
        try:
            pairs = []
            for number in range(rounds + 1):
                prompts = (f"{number}/{n} {PROMPT}" for n in range(1_000_000))
                pair = [asyncio.run(slice_of(proxy, prompts, SLICE_SECONDS)) for proxy in proxies]
                print(f"  slow {shown(pair[0])}   embedded {shown(pair[1])}", flush=True)
                pairs.append(pair)
            for proxy in proxies:
                _print_metrics(proxy)
            return pairs[1:]
        finally:
            for proxy in proxies:
                proxy.stop()


def _print_metrics(proxy: Proxy) -> None:
    with proxy.client() as client:
        metrics = client.get("/messplus/metrics").text.splitlines()
    found = [line for line in metrics if "encoder_" in line or "counter{" in line]
    print(f"{proxy.folder.name}: " + ", ".join(line.removeprefix("messplus_") for line in found))


def report(folder: Path) -> None:
    """Print the duration of decisions, and how long they blocked the event loop."""
    database = sqlite3.connect(folder / "messplus.db")
    found = database.execute("SELECT decision_seconds, features IS NULL FROM requests").fetchall()
    database.close()
    seconds = sorted(each for each, _ in found)
    late = sum(is_late for _, is_late in found) / len(found)
    beyond = sum(each > DEADLINE_SECONDS for each in seconds)
    print(f"\n{folder.name}: {len(found)} decisions, {late:.1%} without features")
    for share in (0.5, 0.9, 0.99, 1.0):
        place = min(int(share * len(seconds)), len(seconds) - 1)
        print(f"  {share:4.0%} of decisions within {seconds[place] * 1000:7.2f} ms")
    print(f"  beyond the deadline of {DEADLINE_SECONDS * 1000:.0f} ms: {beyond}")
    monitored: dict[str, Any] = json.loads((folder / "loop_monitor.json").read_text())
    edges = [f"<{edge:g}" for edge in EDGES] + [f">{EDGES[-1]:g}"]
    print("  " + " " * 22 + "".join(f"{edge:>8}" for edge in edges) + "   longest (ms)")
    for name, words in MONITORED.items():
        counts = "".join(f"{count:8}" for count in monitored[name]["counts"])
        print(f"  {words:22}{counts}   {monitored[name]['longest']:.1f}")
    print("  our longest steps (ms by the clock, on a CPU, collecting garbage; lost, left a CPU)")
    for step in monitored["steps"]:
        spent = "".join(f"{step[name] * 1000:8.1f}" for name in ("wall", "cpu", "collecting"))
        print(f"    {step['step']:52}{spent}{step['preempted']:6}{step['waited']:6}")


def main() -> None:
    given = [int(argument) for argument in sys.argv[1:]]
    rounds, layers = (*given, *(5, LAYERS)[len(given) :])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        slow = save_modernbert_base(folder / "modernbert-base", layers)
        measure_encoder(slow)
        pairs = compare(slow, rounds, folder)
        for own in ("slow", "embedded"):
            report(folder / own)
    ratio = statistics.median(slow.rate / embedded.rate for slow, embedded in pairs)
    print(f"\nthroughput with the slow encoder over that with the embedded one: {ratio:.3f}")


if __name__ == "__main__":
    main()
