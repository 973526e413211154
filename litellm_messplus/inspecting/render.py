"""An explanation and a list of requests, to be printed by a rich console."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from litellm_messplus.inspecting.explain import Explanation
from litellm_messplus.inspecting.listing import Listed
from litellm_messplus.inspecting.logged import UNKNOWN, Row, exact, plain, rounded
from litellm_messplus.routing.decision import Reason

WORDS: dict[str, str] = {
    Reason.AHEAD: "ahead of alpha",
    Reason.BEHIND: "behind alpha",
    Reason.OUT_OF_REACH: "no candidate is expected to hold alpha: best value",
    Reason.UNLABELLED: "no label has come yet: the largest",
    Reason.PROBE: "probe",
    Reason.UNSEEN_PROBE: "probe beside the choice, unseen",
    Reason.NEWCOMER: "a new model is tried",
    Reason.UNSEEN_NEWCOMER: "a new model is tried beside the choice, unseen",
    Reason.FIRST_REQUEST: "first request",
    Reason.EXPLORATION: "exploration",
    Reason.NO_DEBT: "cheapest: no debt",
    Reason.LEAST_PENALTY: "least V*E - Q*s, by cost E, queue Q and satisfaction s",
    Reason.FORCED: "the only one that can take it",
    Reason.HELD: "held: its conversation is there",
    Reason.TROUBLE: "the model before it got no further: a better one",
    Reason.NONE_HEALTHY: "no deployment is healthy",
    Reason.UNDECIDED: "served as before; the choice was not worked out in time",
}
"""What each reason says to a person."""


HOLDS: dict[str, str] = {
    "tool_loop": "It was held: a tool loop was open.",
    "state": "It was held: no other model can read its prompt.",
    "warm": "It was held: its prompt cache was warm.",
    "trouble": "The hold was broken: the model before got no further.",
    "lost": "The hold was broken: the model before had no deployment that could take it.",
    "unknown": "Nobody knew which model had answered before: it was decided anew.",
}
"""What the log says of a hold, to a person."""


def reason_in_words(reason: str) -> str:
    """Say a logged reason to a person; one of another version is shown as it is logged."""
    return WORDS.get(reason, reason)


# An explanation in sentences; numbers are written as they are logged, to the digit.


def sentences(found: Explanation) -> list[str]:
    """Return all sentences, in the order in which a person asks."""
    parts = (_who, _why, _promise, _exploration, _cost, _verdict, _prompt, _price)
    return [plain(sentence) for part in parts for sentence in part(found)]


def _who(found: Explanation) -> Iterator[str]:
    row, outcome = found.logged.request, found.logged.outcome
    yield (
        f"Request {row['request_id']} of {row['created_at']}, to zoo {row['zoo']}, service level "
        f"{row['service_level']}, number {row['t']}, decided by policy {row['policy']}."
    )
    yield from _asked_by(row)
    if outcome["status"] is None:
        yield "It is under way: the log has no end of its served call."
    elif outcome["status"] == "failure":
        yield f"No answer came: the served call of {outcome['served'] or 'no candidate'} failed."
    elif outcome["served"] == row["chosen"]:
        yield f"{row['chosen']} served, as chosen."
    else:
        served = outcome["served"] or "a fallback outside the zoo (or an unknown writer)"
        yield f"{served} served; {row['chosen']} had been chosen."


def _asked_by(row: Row) -> Iterator[str]:
    named = (
        ("key", row["key_alias"]),
        ("team", row["team_id"]),
        ("user", row["user_id"]),
        ("end user", row["end_user"]),
        ("tags", ", ".join(row["tags"] or ())),
    )
    told = [f"{what} {name}" for what, name in named if name]
    if told:
        yield f"Asked by {', '.join(told)}."


def _why(found: Explanation) -> Iterator[str]:
    row = found.logged.request
    yield f"Reason for {row['chosen']}: {reason_in_words(row['reason'])}."
    if row["eligible"] is not None:
        able = ", ".join(row["eligible"])
        yield f"Of the healthy candidates only {able} could take it; the others came last."
        yield f"What told them apart: {', '.join(row['gated_by'] or ())}."
    if row["encode_seconds"] is None:
        yield "The features of the prompt did not come in time: it was decided without them."
    if not row["is_within_reach"] and row["reason"] != Reason.OUT_OF_REACH:
        yield "No candidate was expected to be able to hold alpha."
    yield from _conversation(found)
    is_decided = row["reason"] not in (Reason.HELD, Reason.TROUBLE)
    if not is_decided or found.now is None or found.now.candidate == row["chosen"]:
        return
    yield (
        f"By the logged numbers alone {found.now.candidate} has the lowest score. The router also "
        "weighs which candidates may hold alpha and how little is known of each, and now and then "
        "tries another one: the reason says so, the log does not keep the numbers."
    )


def _conversation(found: Explanation) -> Iterator[str]:
    row = found.logged.request
    if row["conversation"] is None:
        return
    yield f"Turn {row['turn']} of line {row['line']}, in conversation {row['conversation']}."
    if row["hold"] is not None:
        yield HOLDS.get(row["hold"], str(row["hold"]))
    if row["counted_with"] is not None:
        yield (
            f"The promise counts the conversation once: request {row['counted_with']}, its first, "
            "stands for it, and has the verdict."
        )


def _promise(found: Explanation) -> Iterator[str]:
    row = found.logged.request
    aim = "not logged" if row["aim"] is None else exact(row["aim"])
    yield f"alpha {exact(row['alpha'])}, aim {aim}, queue {exact(row['queue'])} ({_owed(found)})."
    if row["price"] is None:
        yield f"No price is logged: policy {row['policy']} has none."
    else:
        yield f"One more satisfied request might cost {exact(row['price'])}: the price."


def _owed(found: Explanation) -> str:
    queue = found.logged.request["queue"]
    if queue == 0.0:
        return "nothing is owed"
    return "satisfied requests are owed" if queue > 0.0 else "below 0 is credit"


def _exploration(found: Explanation) -> Iterator[str]:
    row = found.logged.request
    beside = row["exploration_calls"]
    if not row["is_exploration"]:
        kind = "It was no exploration"
        if beside:
            kind += f"; {beside} more to be called beside it, unseen by the user"
    elif row["policy"] != "adaptive":
        kind = f"It was an exploration: {_or_unknown(beside)} to be called beside the chosen one"
    elif beside:
        kind = f"It was a probe beside the choice: {beside} to be called, unseen by the user"
    else:
        kind = f"It was a probe: {row['chosen']} was tried in place of the best choice"
    yield f"{kind}. An exploration had the probability {exact(row['exploration_probability'])}."
    if row["propensity"] is not None:
        yield f"{row['chosen']} was chosen with the propensity {exact(row['propensity'])}."


def _or_unknown(count: int | None) -> str:
    return "an unknown number of candidates" if count is None else str(count)


def _cost(found: Explanation) -> Iterator[str]:
    row, outcome = found.logged.request, found.logged.outcome
    if outcome["status"] is None:
        return
    measured = ", the served call by measured energy" if outcome["is_measured"] else ""
    yield f"All its calls cost {exact(outcome['cost'])}{measured}, in the zoo's unit."
    which = "largest" if row["eligible"] is None else "one that savings compare with"
    yield f"{row['largest']}, the {which}, alone would have cost {exact(outcome['cost_largest'])}."
    took = exact(row["encode_seconds"])
    yield f"The decision took {exact(row['decision_seconds'])} s, the features {took} s."


def _verdict(found: Explanation) -> Iterator[str]:
    outcome, labels = found.logged.outcome, found.logged.labels
    if outcome["satisfaction"] is None:
        yield f"No label of the served call counts ({len(labels)} labels are logged)."
        return
    yield (
        f"The verdict is {exact(outcome['satisfaction'])}, by {outcome['satisfaction_kind']}, of "
        f"weight {exact(outcome['satisfaction_weight'])}."
    )
    if not found.logged.knows_unseen and any(found.counts(label) is None for label in labels):
        yield "Which label counts on a call that the user did not see, a proxy does not send."


def _prompt(found: Explanation) -> Iterator[str]:
    if found.logged.surface_note is not None:
        yield f"Of the prompt: {found.logged.surface_note}."
    elif found.traits:
        yield f"In the prompt stand out: {', '.join(trait.words for trait in found.traits)}."
    else:
        yield "Nothing stands out in the prompt: it has no text."


def _price(found: Explanation) -> Iterator[str]:
    if not found.prices:
        yield "No candidate has an estimate, so no price would have chosen one."
    elif found.now is not None:
        high = "upwards" if found.now.high is None else f"to {float(found.now.high):.6g}"
        yield (
            f"At the logged price the lowest score is that of {found.now.candidate}, as at every "
            f"price from {float(found.now.low):.6g} {high}."
        )


LONGEST_CELL = 120
COUNTS = {True: "counts", False: "", None: UNKNOWN}


def render_explanation(found: Explanation) -> RenderableType:
    """Render sentences first, then what was expected, what was called, what was said, and other
    prices."""
    tables = (
        _candidates(found) if found.candidates else None,
        _prices(found) if found.prices else None,
        _calls(found) if found.logged.calls else None,
        _labels(found) if found.logged.labels else None,
    )
    return Group(*map(Text, sentences(found)), *(each for each in tables if each is not None))


def render_requests(found: Sequence[Listed]) -> RenderableType:
    """Render one line a request, the newest first."""
    if not found:
        return Text("no such requests")
    columns = ("request", "time, UTC", "zoo", "chosen", "satisfied", "cost", "reason")
    table = _table(f"{len(found)} requests, the newest first", columns)
    for each in found:
        verdict = "no label" if each.satisfied is None else exact(each.satisfied)
        time = each.created_at.strftime("%Y-%m-%d %H:%M:%S")
        cost, reason = rounded(each.cost), reason_in_words(each.reason)
        _add(table, each.request_id, time, each.zoo, each.chosen, verdict, cost, reason)
    return table


def _candidates(found: Explanation) -> Table:
    table = _table("expected", ("candidate", "satisfaction", "cost", "score", ""))
    for each in found.candidates:
        marks = [
            word
            for word, is_so in (("chosen", each.is_chosen), ("lowest score", each.is_best))
            if is_so
        ]
        score = "no price" if each.score is None else exact(each.score)
        cells = (exact(each.satisfaction), exact(each.cost), score)
        _add(table, each.candidate, *cells, ", ".join(marks))
    return table


def _prices(found: Explanation) -> Table:
    table = _table("lowest score at other prices", ("candidate", "from price", "below", ""))
    for each in found.prices:
        high = "any" if each.high is None else rounded(float(each.high))
        now = "now" if each is found.now else ""
        _add(table, each.candidate, rounded(float(each.low)), high, now)
    return table


def _calls(found: Explanation) -> Table:
    names = ("call", "role", "candidate", "status", "prompt tokens", "answer tokens")
    table = _table("calls", (*names, "cost", "seconds", "error"))
    for call in found.logged.calls:
        tokens = (exact(call["prompt_tokens"]), exact(call["completion_tokens"]))
        cost = f"{exact(call['cost'])} {call['cost_source']}"
        candidate = call["candidate"] or f"outside: {call['model']}"
        place = call["call_id"].rpartition(".")[2]
        ended = (cost, exact(call["seconds"]), call["error"])
        _add(table, place, call["role"], candidate, call["status"], *tokens, *ended)
    return table


def _labels(found: Explanation) -> Table:
    table = _table("labels", ("call", "time, UTC", "source", "value", "weight", "", "comment"))
    for label in found.logged.labels:
        place = label["call_id"].rpartition(".")[2]
        numbers = (exact(label["value"]), exact(label["weight"]))
        counts = COUNTS[found.counts(label)]
        _add(table, place, label["created_at"], label["source"], *numbers, counts, label["comment"])
    return table


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    for name in columns:
        table.add_column(name, overflow="fold")
    return table


def _add(table: Table, *cells: str | None) -> None:
    table.add_row(*(Text(plain(cell, LONGEST_CELL)) for cell in cells))
