"""The certificate as one page of Markdown: for who reads the claim, and for who checks it."""

from collections.abc import Iterator

from litellm_messplus.certificate.claim import Certificate, Claim, Promise
from litellm_messplus.certificate.evidence import Sampling
from litellm_messplus.figures.words import percent

IN_WORDS = {
    Sampling.JUDGE: "a judge's grades of a random sample, beside what users and checks said",
    Sampling.DRAWS: "labels that were asked for at random, beside what users and checks said",
    Sampling.ANSWERS: "what users and checks said",
}


def page(certificate: Certificate) -> str:
    """Write it all."""
    return "\n".join(_lines(certificate)) + "\n"


def _lines(found: Certificate) -> Iterator[str]:
    yield f"# Certificate: {found.zoo}"
    yield ""
    yield (
        f"Of the requests decided from {found.since} until {found.until:%Y-%m-%d %H:%M} UTC. Made "
        f"on {found.made_at:%Y-%m-%d %H:%M} UTC, at a confidence of {100.0 * found.level:.4g} %."
    )
    for promise in found.promises:
        yield ""
        yield from _promise(promise, found.window)
    yield ""
    yield from _method(found)
    yield ""
    yield found.counted
    yield ""
    yield found.beside_status
    yield ""
    yield "## The SQL behind it"
    yield ""
    yield "It gives the groups under *Evidence* of every promise."
    yield ""
    yield "```sql"
    yield found.sql
    yield "```"


def _promise(promise: Promise, window: int) -> Iterator[str]:
    claim = promise.since
    yield f"## Service level {promise.service_level}"
    yield ""
    yield (
        f"**Promised: {percent(claim.alpha)} of the {claim.requests:,} {claim.unit} satisfied. "
        f"{claim.verdict_in_words.capitalize()}.**"
    )
    yield ""
    yield (
        f"Between {percent(claim.low)} and {percent(claim.high)} of the {claim.requests:,} "
        f"{claim.unit} were satisfied, most likely {percent(claim.rate)}, by "
        f"{IN_WORDS[claim.sampling]}."
    )
    if claim.failed:
        yield ""
        yield _failures(claim)
    yield ""
    last = promise.last
    if last is None:
        yield f"Of the newest {window:,} none was answered."
    else:
        yield (
            f"The newest {last.requests:,}, of up to {window:,}: between {percent(last.low)} and "
            f"{percent(last.high)}, {last.verdict_in_words}."
        )
    yield ""
    yield "### Evidence"
    yield ""
    yield from _evidence(claim)
    yield ""
    yield "### Assumed"
    yield ""
    yield from (f"- {each}" for each in claim.assumed)


def _failures(claim: Claim) -> str:
    """Say what became of those that got no answer."""
    apart = claim.failed - claim.failed_among
    told = f"{claim.failed:,} {claim.unit} failed: {percent(claim.answered_share)} were answered."
    if apart:
        told += f" The claim is not about {apart:,} of the failed ones."
    if claim.failed_among:
        told += f" In it {claim.failed_among:,} failed ones count as unsatisfied."
    return told


def _evidence(claim: Claim) -> Iterator[str]:
    yield (
        f"Of {claim.requests:,} {claim.unit} users or checks spoke of {claim.told:,}, and the "
        f"judge of {claim.graded:,}; of {claim.paired:,} both did."
    )
    if not claim.said:
        return
    yield ""
    yield f"| Users, checks | Judge | Weight | Probability | {claim.unit.capitalize()} |"
    yield "| --- | --- | --- | --- | --- |"
    for each in claim.said:
        cells = (each.word, each.grade, each.weight, each.probability)
        shown = ("" if cell is None else f"{cell:g}" for cell in cells)
        yield f"| {' | '.join((*shown, f'{each.requests:,}'))} |"


def _method(found: Certificate) -> Iterator[str]:
    yield "## How to read it"
    yield ""
    yield (
        "The interval is a confidence sequence: whoever looks as often as they like, and stops "
        f"when they like, finds the truth outside in {100.0 * (1.0 - found.level):.3g} % of cases "
        "at most. *Kept*: all of it is at or above the promise. *Not kept*: all of it is below. "
        "*Kept within x points*: the promise lies in it, and the share may be x points below at "
        "most. The interval of the newest requests is right at every look at that window, and not "
        "for all windows together. The method, and its sources: docs/certificate.md."
    )
