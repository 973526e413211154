"""Encoders compared on one recording: their information on the labels, the saving, and the time
per prompt."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE
from rich.table import Table

from litellm_messplus.encoders.lookup import NoEncoder, load_encoder
from litellm_messplus.prediction.encoder import Encoder
from litellm_messplus.prediction.head import Label
from litellm_messplus.prediction.predictor import Predictor
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.prediction.rates import FadingRate, rates
from litellm_messplus.prediction.trust import within
from litellm_messplus.replay.experiment import Experiment, load, print_all
from litellm_messplus.replay.files import Joining, one_each, streams
from litellm_messplus.replay.plan import Plan
from litellm_messplus.replay.recording import Matrix, Prompts, Recording, ReplayError
from litellm_messplus.replay.show import scale
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.runtime.terminal import progress


@dataclass(frozen=True)
class Compared:
    """One encoder on one recording; means over seeds.

    Log-losses are in nats per label. ``auc`` is None if no model has labels of both kinds.
    """

    log_loss: float
    log_loss_mean: float
    auc: float | None
    cost_total: float
    d_points: float
    ms_per_prompt: float
    ms_per_update: float


@dataclass(frozen=True)
class Comparison:
    """All encoders on one recording, by the setting that names each: together with the surface of
    the prompts, as the router reads them, and ``alone``."""

    file: str
    unit: str
    requests: int
    alpha: float
    seeds: int
    encoders: dict[str, Compared]
    alone: dict[str, Compared]


@dataclass(frozen=True, eq=False)
class Prequential:
    """One seed's predictions before each label was known, shape (requests, models) as the labels:
    from the prompt, and from the running means alone."""

    label: Matrix
    predicted: Matrix
    mean: Matrix
    seconds_per_update: float

    @classmethod
    def of(cls, recording: Recording, dimension: int, seed: int) -> "Prequential":
        """Teach every label to the predictor of policy `adaptive`, in the order of a replay with
        this seed."""
        recording = recording.take(np.random.default_rng(seed).permutation(len(recording)))
        predictor = Predictor(recording.models, dimension)
        means = [FadingRate() for _ in recording.models]
        predicted, mean = np.empty((2, *recording.satisfied.shape))
        seconds = 0.0
        for request, labels in enumerate(recording.satisfied.tolist()):
            read = recording.prompt[request]
            prompt = Prompt(recording.prompts.features[read], recording.prompts.surfaces[read])
            predicted[request] = predictor.satisfaction(prompt)
            mean[request] = [within(rate) for rate in rates(means)[0]]
            started = perf_counter()
            for model, label in zip(recording.models, labels, strict=True):
                predictor.learn(model, f"{request}/{model}", str(request), prompt, Label(label))
            seconds += perf_counter() - started
            for running, label in zip(means, labels, strict=True):
                running.add(label)
        return cls(recording.satisfied, predicted, mean, seconds / recording.satisfied.size)

    @property
    def auc(self) -> float | None:
        """The AUC of what the prompt adds to a model's running mean; the mean over models.

        Hence one half without reading. The AUC of the predictions themselves would also reflect the
        difference between models, and a mean that falls after each bad label.
        """
        added = np.round(self.predicted - self.mean, 12)  # else rounding breaks ties
        found = [auc(added[:, model], self.label[:, model]) for model in range(added.shape[1])]
        return _mean([each for each in found if each is not None])


def compare(
    recording: Recording,
    encoders: dict[str, Encoder],
    alpha: float,
    seeds: int,
    advance: Callable[[], None] = lambda: None,
) -> Comparison:
    """Compare encoders, each of which reads the prompts of ``recording`` anew, with their surface
    and alone; ``advance`` is called four times per seed and encoder.

    Raises ReplayError if the texts were not kept, and for an alpha that is not allowed.
    """
    _check_texts(recording.name, recording.prompts)
    joint, alone = (
        {
            name: _compared(recording, encoder, alpha, seeds, advance, has_surface=has_surface)
            for name, encoder in encoders.items()
        }
        for has_surface in (True, False)
    )
    return Comparison(recording.name, recording.unit, len(recording), alpha, seeds, joint, alone)


def _compared(
    recording: Recording,
    encoder: Encoder,
    alpha: float,
    seeds: int,
    advance: Callable[[], None],
    *,
    has_surface: bool,
) -> Compared:
    started = perf_counter()
    prompts = Prompts.encode(recording.prompts.texts, encoder)
    seconds = perf_counter() - started
    if not has_surface:
        prompts = replace(prompts, surfaces=(None,) * len(prompts.texts))
    recording = replace(recording, prompts=prompts)
    plan = Plan(policy="adaptive", seeds=seeds, with_baselines=False)
    score = Experiment([recording], alpha, plan, encoder).go(advance).score
    runs = []
    for seed in range(seeds):
        runs.append(Prequential.of(recording, encoder.dimension, seed))
        advance()
    return Compared(
        log_loss=float(np.mean([log_loss(run.predicted, run.label) for run in runs])),
        log_loss_mean=float(np.mean([log_loss(run.mean, run.label) for run in runs])),
        auc=_mean([run.auc for run in runs if run.auc is not None]),
        cost_total=float(score.costs.mean()),
        d_points=float(score.points.mean()),
        ms_per_prompt=1000.0 * seconds / len(prompts.texts),
        ms_per_update=1000.0 * float(np.mean([run.seconds_per_update for run in runs])),
    )


def log_loss(predicted: Matrix, label: Matrix) -> float:
    """Compute the mean cross-entropy in nats; predictions must lie strictly between 0 and 1."""
    losses: Matrix = -label * np.log(predicted) - (1.0 - label) * np.log(1.0 - predicted)
    return float(losses.mean())


def auc(score: NDArray[Any], label: NDArray[Any]) -> float | None:
    """Compute the probability that a satisfied request has a higher score than an unsatisfied one,
    ties counting half; None if all are of one kind. Both of shape (requests,), labels 0 or 1."""
    satisfied = label > 0.5
    positives, negatives = int(satisfied.sum()), int((~satisfied).sum())
    if not positives or not negatives:
        return None
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2.0)[place]
    least = positives * (positives + 1) / 2.0
    return float((rank[satisfied].sum() - least) / (positives * negatives))


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _check_texts(name: str, prompts: Prompts) -> None:
    """Check that the texts were kept: a log may hold the features alone, which other encoders
    cannot use."""
    lost = sum(
        not text and characters > 0
        for text, characters in zip(prompts.texts, prompts.characters, strict=True)
    )
    if lost:
        raise ReplayError(
            f"{name}: prompts: given {lost} without their text; allowed: a recording with all of "
            "them (in a database: `store_text`)"
        )


# `messplus replay --encoder`: load, compare, and show.


def run(
    sources: Sequence[str],
    alphas: Sequence[float],
    settings: Sequence[str],
    *,
    seeds: int,
    joining: Joining,
    as_json: bool,
) -> None:
    """Compare the encoders of those settings on every stream, and show the comparisons; ``alphas``
    holds one for all streams, or one for each. Raises ReplayError for unusable inputs."""
    encoders = {setting: _encoder(setting) for setting in settings}
    recordings = [found.known() for source in sources for found in load(source, NoEncoder())]
    joined = [parts[0] for parts in streams(recordings, joining)]
    comparisons = []
    with progress("runs") as bar:
        for recording, alpha in zip(joined, one_each(alphas, len(joined)), strict=True):
            task = bar.add_task(recording.name, total=4 * seeds * len(encoders))
            advance = partial(bar.advance, task)
            comparisons.append(compare(recording, encoders, alpha, seeds, advance))
    print_all(comparisons, asdict, _table, as_json=as_json)


def _encoder(setting: str) -> Encoder:
    try:
        return load_encoder(setting)
    except ConfigurationError as error:
        raise ReplayError(f"--encoder: given '{setting}'; allowed: {error.allowed}") from error


def _table(comparison: Comparison) -> Table:
    """Lay out two rows per encoder: with the surface of the prompts, and alone."""
    rows = {
        **comparison.encoders,
        **{f"{name}, alone": found for name, found in comparison.alone.items()},
    }
    factor, unit = scale(max(each.cost_total for each in rows.values()), comparison.unit)
    shown = Table(
        title=f"{comparison.file}\n{comparison.requests} requests, {comparison.seeds} seeds, "
        f"alpha {comparison.alpha:g}",
        caption="log-loss in nats, of the predictions and of the running mean;\n"
        "cost: of every call of a replay; d: points above alpha;\n"
        "alone: without the surface of the prompts, which the router reads with every encoder",
        box=SIMPLE,
        pad_edge=False,
        collapse_padding=True,
    )
    shown.add_column("encoder", overflow="fold")
    columns = ("log-loss", "of mean", "AUC", f"cost, {unit}", "d", "ms/prompt", "ms/update")
    for column in columns:
        shown.add_column(column, justify="right", no_wrap=True)
    for name, found in rows.items():
        shown.add_row(
            name,
            f"{found.log_loss:.4f}",
            f"{found.log_loss_mean:.4f}",
            "unknown" if found.auc is None else f"{found.auc:.3f}",
            f"{found.cost_total * factor:.4g}",
            f"{found.d_points:+.2f}",
            f"{found.ms_per_prompt:.3f}",
            f"{found.ms_per_update:.3f}",
        )
    return shown
