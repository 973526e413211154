"""The result of a simulation as text: a bar for each policy, and all that was assumed."""

from collections.abc import Iterator

from benchmarks.simulation.experiment import Result
from benchmarks.simulation.policies import HELD

WIDTH = 30
"""Of the bar of what deciding each turn costs."""


def picture(result: Result) -> str:
    """Draw the result for people."""
    return "\n".join([*_heading(result), "", *_bars(result), "", *_assumptions(result)])


def _heading(result: Result) -> Iterator[str]:
    yield "A SIMULATION of agents' sessions: made-up tasks, no measurement."
    yield (
        f"Prices of {result.zoo.name}; {len(result.targets)} x {result.sessions} sessions; every "
        f"policy satisfies {sum(result.targets) / len(result.targets):.1%} of them."
    )
    yield (
        f"ratio {result.ratio:.2f}: what '{HELD.name}' costs, over what deciding each turn costs."
    )


def _bars(result: Result) -> Iterator[str]:
    longest = max(map(len, result.ratios))
    yield f"{'':{longest}}  {'cost':{WIDTH}}  ratio       a session  switches in loops"
    for name, (mean, deviation) in result.ratios.items():
        found = result.average(name)
        yield (
            f"{name:{longest}}  {'#' * round(WIDTH * mean):{WIDTH}}  {mean:.2f} +-{deviation:.2f}  "
            f"{_amount(found.cost, result.zoo.unit):>9}  {found.switches_in_loops:.1f}"
        )
    shares = [
        share
        for name in result.ratios
        for share in (result.average(name).satisfied_short, result.average(name).satisfied_long)
    ]
    yield f"Of short and of long sessions, each satisfies {min(shares):.0%} to {max(shares):.0%}."


def _amount(cost: float, unit: str) -> str:
    return f"{cost:.3f} {unit}" if cost < 100.0 else f"{cost:,.0f} {unit}"


def _assumptions(result: Result) -> Iterator[str]:
    assumed, zoo = result.assumed, result.zoo
    yield "Assumed:"
    yield (
        f"  turns of a session lognormal, median {assumed.median_turns:g}, deviation of the "
        f"logarithm {assumed.turns_deviation:g}"
    )
    yield f"  {assumed.loop_calls:g} calls from one user's turn to the next"
    yield (
        f"  first prompt {assumed.prefix_tokens:,} tokens, {assumed.growth_tokens} more each turn, "
        f"answers of {assumed.answer_tokens}"
    )
    yield (
        f"  gaps of {assumed.loop_gap:g} s in a loop and {assumed.user_gap:g} s before a user's "
        f"turn (medians); prompts stay cached for {zoo.cache_seconds:g} s"
    )
    yield (
        f"  hidden difficulty, which a turn shows with as much noise (times {assumed.noise:g}); "
        f"critical steps of a session: {assumed.critical_steps}"
    )
    for model in zoo.models:
        price, scale = model.price, 1e6 if zoo.unit == "USD" else 1.0
        yield (
            f"  {model.name}: {price.prompt * scale:g} read, "
            f"{(price.prompt - price.cached_discount) * scale:g} cached, "
            f"{(price.prompt + price.written_surcharge) * scale:g} stored, "
            f"{price.completion * scale:g} written ({zoo.unit} "
            f"{'a million tokens' if zoo.unit == 'USD' else 'a token'}); skill {model.skill:g}"
        )
