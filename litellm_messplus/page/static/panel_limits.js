// The limits besides alpha: how many requests are late, what today has cost, and which limit decides.

import { el, table } from "./dom.js";
import { cost, count, interval, isKnown, number, owed, percent } from "./format.js";

const BINDS = {
  budget: "The budget decides who serves: it comes before the promise.",
  latency: "Latency decides who serves, as far as the promise allows.",
};

/** Nothing where the promise has no limits. */
export function limitsPanel({ limits, cost_unit: unit }) {
  if (!isKnown(limits)) {
    return null;
  }
  return el(
    "section",
    { id: "limits", class: "card", "aria-labelledby": "limits-title" },
    el("h2", { id: "limits-title" }, "Limits"),
    el("p", { class: "note" }, BINDS[limits.binding] ?? "Neither limit decides who serves now."),
    table(
      "Limits besides the promise",
      [{ name: "limit", words: true }, { name: "allowed", number: true }, { name: "so far", number: true }, { name: "its price now", words: true }],
      [limits.latency && latencyRow(limits.latency, unit), limits.budget && budgetRow(limits.budget, unit)].filter(Boolean),
    ),
  );
}

function latencyRow(latency, unit) {
  const late = isKnown(latency.late_share) ? `${percent(latency.late_share)} of ${count(latency.ended)} (${interval(latency.low, latency.high)})` : "no request has ended yet";
  return [
    `longer than ${number(latency.seconds)} s`,
    `${percent(latency.allowed_share, 0)} of the requests`,
    late,
    `${owed(latency.late_owed)} late requests owed; one less may cost ${cost(latency.late_price, unit)}`,
  ];
}

function budgetRow(budget, unit) {
  return [
    "cost of today (UTC)",
    `${cost(budget.per_day, unit)}, by now ${cost(budget.allowed, unit)}`,
    cost(budget.spent, unit),
    budget.strain > 1 ? `every cost counts ${number(budget.strain)} times` : "costs count as they are",
  ];
}
