// Every promise as it stands, one card each: the rate with its interval against alpha, what was
// saved, what is owed. A card is a radio button: the panels below show the one that is chosen.

import { el, svg } from "./dom.js";
import { compact, cost, count, interval, isKnown, modelName, number, percent, promiseName } from "./format.js";

const STANDS = {
  kept: ["good", "kept"],
  "kept within": ["good", "kept"],
  "not kept": ["bad", "not kept"],
  "cannot say yet": ["open", "cannot say yet"],
};

export function promisesPanel(levels, chosen, choose) {
  const cards = levels.map((level, place) => promiseCard(level, place, level === chosen, choose));
  return el(
    "section",
    { id: "promises", "aria-labelledby": "promises-title" },
    el("h2", { id: "promises-title" }, "Promises"),
    levels.length
      ? el("fieldset", { class: "promises" }, el("legend", { class: "unseen" }, "Show the details of"), ...cards)
      : el("p", { class: "card empty" }, "No zoo is configured."),
  );
}

/** What the verdict of a satisfaction is, as a chip: its colour is never alone, words say it too. */
export function verdictChip(satisfaction) {
  const [kind, words] = STANDS[satisfaction.verdict];
  const points = satisfaction.kept_within_points;
  return el("span", { class: `chip ${kind}` }, isKnown(points) ? `${words} within ${points} points` : words);
}

function promiseCard(level, place, isChosen, choose) {
  const id = `promise-${place}`;
  const { satisfaction, savings, cost: paid } = level.overall;
  const name = promiseName(level);
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
      el("span", { class: "promise-head" }, el("span", { class: "promise-name" }, name), verdictChip(satisfaction)),
      el(
        "span",
        { class: "promise-rate" },
        el("strong", {}, isKnown(satisfaction.rate) ? percent(satisfaction.rate) : "–"),
        el("span", {}, ` satisfied, promised ${percent(satisfaction.promised, 0)}`),
      ),
      gauge(satisfaction),
      el("span", { class: "note" }, `${interval(satisfaction.low, satisfaction.high)}, ${count(satisfaction.answered)} of ${count(satisfaction.requests)} with a verdict`),
      el(
        "span",
        { class: "facts" },
        fact("saved", savings ? percent(savings.saved_share, 0) : "–", level.largest ? `against ${modelName(level.largest)}` : ""),
        fact("cost", cost(paid.total, level.cost_unit), isKnown(paid.per_request) ? `${cost(paid.per_request, level.cost_unit)} a request` : ""),
        fact("queue", isKnown(level.queue) ? number(level.queue) : "–", level.queue > 0 ? "requests owed" : "nothing owed"),
        fact("requests", compact(satisfaction.requests), level.is_within_reach ? "" : "out of reach"),
      ),
    ),
  );
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
  const at = (share) => 4 + 192 * share;
  return svg(
    "svg",
    { class: "gauge", viewBox: "0 0 200 18", preserveAspectRatio: "none", "aria-hidden": "true", focusable: "false" },
    svg("rect", { class: "gauge-track", x: 4, y: 7, width: 192, height: 4, rx: 2 }),
    isKnown(low) ? svg("rect", { class: "gauge-band", x: at(low), y: 5, width: Math.max(2, at(high) - at(low)), height: 8, rx: 3 }) : null,
    isKnown(rate) ? svg("rect", { class: "gauge-rate", x: at(rate) - 1.5, y: 2, width: 3, height: 14, rx: 1.5 }) : null,
    svg("rect", { class: "gauge-alpha", x: at(promised) - 1, y: 0, width: 2, height: 18 }),
  );
}
