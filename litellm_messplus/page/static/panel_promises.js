// Every promise as it stands, one card each: the rate with its interval against alpha, what was
// saved, what is owed. A card is a radio button: the panels below show the one that is chosen.

import { el, svg } from "./dom.js";
import { compact, cost, count, interval, isKnown, modelName, owed, percent, promiseName, rate } from "./format.js";

const STANDS = {
  "on track": ["good", "on track"],
  below: ["bad", "below"],
  "too early": ["open", "too early"],
  failing: ["bad", "failing"],
  kept: ["good", "kept"],
  "kept within": ["good", "kept"],
  "not kept": ["bad", "not kept"],
  "cannot say yet": ["open", "cannot say yet"],
};

/** The share answered below which somebody must look. */
export const FEWEST = 0.95;

export function promisesPanel(levels, chosen, choose) {
  const cards = levels.flatMap((level, place) => (isUsed(level) ? [promiseCard(level, place, level === chosen, choose)] : []));
  const unused = levels.filter((level) => !isUsed(level)).map((level) => `${promiseName(level)} (promised ${percent(level.alpha, 0)})`);
  return el(
    "section",
    { id: "promises", "aria-labelledby": "promises-title" },
    el("h2", { id: "promises-title" }, "Promises"),
    levels.length
      ? el(
          "fieldset",
          { class: "all-promises" },
          el("legend", { class: "unseen" }, "Show the details of"),
          el("div", { class: "promises" }, ...cards),
          unused.length ? el("p", { class: cards.length ? "note" : "card empty" }, `No requests yet: ${unused.join(", ")}.`) : null,
        )
      : el("p", { class: "card empty" }, "No zoo is configured."),
  );
}

/** Whether a promise has anything to show. */
export function isUsed(level) {
  return level.overall.satisfaction.requests > 0 || isKnown(level.as_before);
}

/** What the verdict of a satisfaction is, as a chip: its colour is never alone, words say it too. */
export function verdictChip(satisfaction) {
  const [kind, words] = STANDS[satisfaction.verdict];
  const points = satisfaction.kept_within_points;
  return el("span", { class: `chip ${kind}` }, isKnown(points) ? `${words} within ${points} points` : words);
}

function promiseCard(level, place, isChosen, choose) {
  const id = `promise-${place}`;
  const { satisfaction } = level.overall;
  const isWatched = satisfaction.requests === 0;
  return el(
    "div",
    { class: "promise" },
    el("input", {
      type: "radio",
      name: "promise",
      id,
      checked: isChosen,
      on: { change: () => choose(level) },
    }),
    el(
      "label",
      { for: id, class: "card" },
      el(
        "span",
        { class: "promise-head" },
        el("span", { class: "promise-name" }, promiseName(level)),
        isWatched ? el("span", { class: "chip info" }, "watched") : verdictChip(satisfaction),
      ),
      ...(isWatched ? watched(level) : inUse(level)),
    ),
  );
}

function inUse(level) {
  const { answers, satisfaction, savings, cost: paid } = level.overall;
  const unit = level.cost_unit;
  const verdicts = `${count(satisfaction.judged)} judged, of ${count(answers.answered)} answered, of ${count(answers.requests)} requests`;
  return [
    el(
      "span",
      { class: "promise-rate" },
      el("strong", {}, isKnown(satisfaction.rate) ? percent(satisfaction.rate) : "–"),
      el("span", {}, ` satisfied, promised ${percent(satisfaction.promised, 0)}`),
    ),
    gauge(satisfaction),
    el("span", { class: "note" }, `${interval(satisfaction.low, satisfaction.high)} of ${verdicts}`),
    el(
      "span",
      { class: "facts" },
      fact("routing saved", savings ? percent(savings.routing_saved / savings.cost_largest, 0) : "–", level.largest ? `of always calling ${modelName(level.largest)}` : ""),
      savings && savings.label_cost ? fact("labels cost", cost(savings.label_cost, unit), `net saved ${cost(savings.saved, unit)}`) : null,
      fact("cost", cost(paid.total, unit), isKnown(paid.per_request) ? `${cost(paid.per_request, unit)} a request` : ""),
      queue(level.queue),
      answered(answers.answered_share, answers.failed ? `${count(answers.failed)} of ${count(answers.answered + answers.failed)} failed` : "of those that ended"),
      fact("requests", compact(answers.requests), level.is_within_reach ? `${rate(level.requests_per_hour, true)} now` : "out of reach"),
    ),
  ];
}

/** What the requests of a zoo come to that routes none: its promise has no figures yet. */
function watched({ as_before: found, cost_unit: unit, alpha }) {
  return [
    el(
      "span",
      { class: "promise-rate" },
      el("strong", {}, isKnown(found.rate) ? percent(found.rate) : "–"),
      el("span", {}, ` satisfied as before, to be promised ${percent(alpha, 0)}`),
    ),
    gauge({ ...found, promised: alpha }),
    el("span", { class: "note" }, `${interval(found.low, found.high)}, ${count(found.judged)} of the newest ${count(found.requests)} requests judged`),
    el("span", { class: "facts" }, answered(found.answered_share, "of those that ended"), fact("cost a request", cost(found.cost_per_request, unit), "of the calls that served"), fact("requests now", rate(found.requests_per_hour, true))),
  ];
}

/** In red where so many fail that somebody must look. */
function answered(share, note) {
  return fact("answered", share < FEWEST ? el("span", { class: "failed" }, percent(share)) : percent(share), note);
}

function queue(value) {
  if (!isKnown(value)) {
    return null;
  }
  return fact("queue", owed(Math.abs(value)), value >= 0.005 ? "satisfied requests owed" : value <= -0.005 ? "satisfied requests ahead" : "requests owed");
}

function fact(name, value, note) {
  return el(
    "span",
    { class: "fact" },
    el("span", { class: "fact-name" }, name),
    el("span", { class: "fact-value" }, value),
    note ? el("span", { class: "fact-note" }, note) : null,
  );
}

/** The interval on a line from 0 to 100 %, with a mark where alpha is. */
function gauge({ rate, low, high, promised }) {
  const at = (share) => `${(1 + 98 * share).toFixed(2)}%`;
  const mark = (kind, share, reach) => svg("line", { class: kind, x1: at(share), x2: at(share), y1: 9 - reach, y2: 9 + reach });
  const bar = (kind, from, to) => svg("line", { class: kind, x1: at(from), x2: at(to), y1: 9, y2: 9 });
  return svg(
    "svg",
    { class: "gauge", "aria-hidden": "true", focusable: "false" },
    bar("gauge-track", 0, 1),
    isKnown(low) ? bar("gauge-band", low, high) : null,
    isKnown(rate) ? mark("gauge-rate", rate, 6) : null,
    mark("gauge-alpha", promised, 9),
  );
}
