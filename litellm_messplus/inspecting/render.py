"""Rendering of an explanation and of a list of requests, for a rich console."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.text import Text

from litellm_messplus.core.decision import Reason
from litellm_messplus.core.held import FAILED
from litellm_messplus.figures.words import UNKNOWN, figure, moment, percent
from litellm_messplus.inspecting.explain import Explanation, reason_in_words
from litellm_messplus.inspecting.listing import Listed
from litellm_messplus.inspecting.logged import Row, plain
from litellm_messplus.runtime.terminal import Rows, numbers, whole, words
from litellm_messplus.runtime.vocabulary import CallRole
from litellm_messplus.switching.modes import LITELLM

NOT_BY_SCORE = (Reason.HELD, Reason.TROUBLE, Reason.DEADLINE_MISSED)
"""Reasons for which the scores do not decide who serves."""

HOLDS: dict[str, str] = {
    "tool_loop": "It was held: a tool loop was open.",
    "state": "It was held: no other model can read its prompt.",
    "warm": "It was held: its prompt cache was warm.",
    "trouble": "The hold was broken: the model before got no further.",
    "lost": "The hold was broken: the model before had no deployment that could take it.",
    "unknown": "It was unknown which model had answered before: it was decided anew.",
}
"""The logged reasons of a hold, in words."""


# An explanation in sentences.


def sentences(found: Explanation) -> list[str]:
    """Return all sentences, in the order of a reader's questions."""
    about = (_who, _why, _changes, _promise, _exploration)
    parts = (*about, _readings, _cost, _verdict, _prompt, _price)
    return [plain(sentence) for part in parts for sentence in part(found)]


def _who(found: Explanation) -> Iterator[str]:
    row, outcome = found.logged.request, found.logged.outcome
    yield (
        f"Request {row['request_id']} of {row['created_at']}, to zoo {row['zoo']}, service level "
        f"{row['service_level']}, number {row['t']}, decided by policy {row['policy']}."
    )
    yield from _sent_by(row)
    if outcome["status"] is None:
        yield "It is under way: the log has no end of its served call."
    elif outcome["status"] == "failure":
        yield f"No answer came: the served call of {outcome['served'] or 'no candidate'} failed."
        return
    served = outcome["served"] or "a fallback outside the zoo (or an unknown writer)"
    if row["chosen"] == LITELLM:
        yield f"{served} served: LiteLLM's own choice."
    elif served == row["chosen"]:
        yield f"{served} served, as chosen."
    else:
        yield f"{served} served; {row['chosen']} had been chosen."


def _changes(found: Explanation) -> Iterator[str]:
    """Name the candidates that had changed, and whether that was known."""
    for change in found.logged.changes:
        is_known = change.found <= datetime.fromisoformat(found.logged.request["created_at"])
        known = "known by then" if is_known else f"found at {moment(change.found)}"
        yield f"A model had changed, {known}: {change.words}."


def _sent_by(row: Row) -> Iterator[str]:
    named = (
        ("key", row["key_alias"]),
        ("team", row["team_id"]),
        ("user", row["user_id"]),
        ("end user", row["end_user"]),
        ("tags", ", ".join(row["tags"] or ())),
    )
    sender = [f"{what} {name}" for what, name in named if name]
    if sender:
        yield f"Asked by {', '.join(sender)}."


def _why(found: Explanation) -> Iterator[str]:
    row = found.logged.request
    chosen = "LiteLLM's own choice" if row["chosen"] == LITELLM else row["chosen"]
    yield f"Reason for {chosen}: {reason_in_words(row['reason'])}."
    if row["eligible"] is not None:
        able = ", ".join(row["eligible"])
        why = row["gated_by"] or ()
        if FAILED in why:
            yield f"What the candidates can take could not be found out: only {able} was eligible."
        else:
            yield f"Of the healthy candidates only {able} could take it; the others came last."
            yield f"What told them apart: {', '.join(why)}."
    if row["encode_seconds"] is None:
        yield "The features of the prompt did not come in time: it was decided without them."
    if not row["is_within_reach"] and row["reason"] != Reason.OUT_OF_REACH:
        yield "No candidate was expected to be able to hold alpha."
    yield from _conversation(found)
    if row["reason"] in NOT_BY_SCORE or found.now is None or found.now.candidate == row["chosen"]:
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


def _promise(found: Explanation) -> Iterator[str]:
    row = found.logged.request
    aim = "not logged" if row["aim"] is None else figure(row["aim"])
    yield f"alpha {figure(row['alpha'])}, aim {aim}, queue {figure(row['queue'])} ({_owed(found)})."
    if row["price"] is None:
        yield f"No price is logged: policy {row['policy']} has none."
    else:
        yield f"One more satisfied request might cost {figure(row['price'])}: the price."


def _owed(found: Explanation) -> str:
    queue = found.logged.request["queue"]
    if queue == 0.0:
        return "nothing is owed"
    return "satisfied requests are owed" if queue > 0.0 else "below 0 is credit"


def _exploration(found: Explanation) -> Iterator[str]:
    row = found.logged.request
    extra = row["exploration_calls"]
    if not row["is_exploration"]:
        kind = "It was no exploration"
        if extra:
            kind += f"; {extra} more to be called in addition, unseen by the user"
    elif row["policy"] != "adaptive":
        others = "an unknown number of candidates" if extra is None else extra
        kind = f"It was an exploration: {others} to be called in addition to the chosen one"
    elif extra:
        kind = f"It was a probe in addition to the choice: {extra} to be called, unseen by the user"
    else:
        kind = f"It was a probe: {row['chosen']} was tried in place of the best choice"
    yield f"{kind}. An exploration had the probability {figure(row['exploration_probability'])}."
    if row["propensity"] is not None:
        yield f"{row['chosen']} was chosen with the propensity {figure(row['propensity'])}."


def _readings(found: Explanation) -> Iterator[str]:
    """State what an answer that was read showed, and whether another one was given in its place."""
    for call in found.logged.calls:
        if call["answer_said"] is not None:
            shown = (percent(call[name], 0) for name in ("answer_said", "prompt_said"))
            is_replaced = call["role"] == CallRole.REPLACED
            then = f"{found.logged.outcome['served']} answered instead" if is_replaced else "kept"
            yield "The answer of {} says {}, the prompt said {}: {}.".format(
                call["candidate"], *shown, then
            )


def _cost(found: Explanation) -> Iterator[str]:
    row, outcome = found.logged.request, found.logged.outcome
    if outcome["status"] is None:
        return
    yield f"All its calls cost {figure(outcome['cost'])}, in the zoo's unit."
    which = "largest" if row["eligible"] is None else "one that savings compare with"
    yield f"{row['largest']}, the {which}, alone would have cost {figure(outcome['cost_largest'])}."
    took = figure(row["encode_seconds"])
    yield f"The decision took {figure(row['decision_seconds'])} s, the features {took} s."


def _verdict(found: Explanation) -> Iterator[str]:
    outcome, labels = found.logged.outcome, found.logged.labels
    if outcome["satisfaction"] is None:
        yield f"No label of the served call counts ({len(labels)} labels are logged)."
        return
    yield (
        f"The verdict is {figure(outcome['satisfaction'])}, by {outcome['satisfaction_kind']}, of "
        f"weight {figure(outcome['satisfaction_weight'])}."
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
        high = "upwards" if found.now.high is None else f"to {figure(float(found.now.high))}"
        yield (
            f"At the logged price the lowest score is that of {found.now.candidate}, as at every "
            f"price from {figure(float(found.now.low))} {high}."
        )


LONGEST_CELL = 120
COUNTS = {True: "counts", False: "", None: UNKNOWN}


def render_explanation(found: Explanation) -> RenderableType:
    """Render sentences first, then expectations, calls, labels, and other prices."""
    tables = (
        _candidates(found) if found.candidates else None,
        _prices(found) if found.prices else None,
        _calls(found) if found.logged.calls else None,
        _labels(found) if found.logged.labels else None,
    )
    return Group(*map(Text, sentences(found)), *(each for each in tables if each is not None))


def render_requests(found: Sequence[Listed]) -> RenderableType:
    """Render one row a request, the newest first."""
    if not found:
        return Text("no such requests")
    title = f"{len(found)} requests, the newest first; costs in each zoo's unit"
    names = whole("request", "time, UTC", "zoo", "chosen", "outcome")
    columns = (*names, *numbers("satisfied", "cost"))
    rows = Rows(title, (*columns, *words("reason")))
    for each in found:
        verdict = "no label" if each.satisfied is None else figure(each.satisfied)
        cost, reason = figure(each.cost), reason_in_words(each.reason)
        cells = (each.request_id, moment(each.created_at), each.zoo, each.chosen, each.outcome)
        _add(rows, *cells, verdict, cost, reason)
    return rows


def _candidates(found: Explanation) -> Rows:
    columns = (*numbers("satisfaction", "cost", "score"), *words(""))
    rows = Rows("expected; costs and scores in the zoo's unit", (*whole("candidate"), *columns))
    for each in found.candidates:
        marks = [
            word
            for word, is_so in (("chosen", each.is_chosen), ("lowest score", each.is_best))
            if is_so
        ]
        score = "no price" if each.score is None else figure(each.score)
        cells = (figure(each.satisfaction), figure(each.cost), score)
        _add(rows, each.candidate, *cells, ", ".join(marks))
    return rows


def _prices(found: Explanation) -> Rows:
    columns = (*whole("candidate"), *numbers("from price", "below"), *whole(""))
    rows = Rows("lowest score at other prices, in the zoo's unit", columns)
    for each in found.prices:
        high = "any" if each.high is None else figure(float(each.high))
        now = "now" if each is found.now else ""
        _add(rows, each.candidate, figure(float(each.low)), high, now)
    return rows


def _calls(found: Explanation) -> Rows:
    names = whole("call", "role", "candidate", "status")
    figures = numbers("prompt tokens", "answer tokens", "cost", "seconds")
    rows = Rows("calls; costs in the zoo's unit", (*names, *figures, *words("cost is", "error")))
    for call in found.logged.calls:
        tokens = (figure(call["prompt_tokens"]), figure(call["completion_tokens"]))
        candidate = call["candidate"] or f"outside: {call['model']}"
        place = call["call_id"].rpartition(".")[2]
        ended = (figure(call["cost"]), figure(call["seconds"]), call["cost_source"], call["error"])
        _add(rows, place, call["role"], candidate, call["status"], *tokens, *ended)
    return rows


def _labels(found: Explanation) -> Rows:
    columns = (*whole("call", "time, UTC", "source"), *numbers("value", "weight"), *whole(""))
    rows = Rows("labels", (*columns, *words("comment")))
    for label in found.logged.labels:
        place = label["call_id"].rpartition(".")[2]
        given = (figure(label["value"]), figure(label["weight"]))
        counts = COUNTS[found.counts(label)]
        at = moment(datetime.fromisoformat(label["created_at"]))
        _add(rows, place, at, label["source"], *given, counts, label["comment"])
    return rows


def _add(rows: Rows, *cells: str | None) -> None:
    rows.add(*(plain(cell, LONGEST_CELL) for cell in cells))
