// What a switch is decided by: the newest requests that were served as before, next to the forecast of
// routing.

import { el, table } from "./dom.js";
import { cost, count, interval, isKnown, percent, rate } from "./format.js";

/** Nothing where no request was served as before. The forecasts are of the whole zoo, null without one: of
 * routing, and of `reading` answers with it. */
export function beforePanel({ as_before: found, cost_unit: unit }, { forecast = null, second_answers: reading = null } = {}) {
  if (!isKnown(found)) {
    return null;
  }
  const about = forecast ? `The forecast is from ${count(forecast.requests)} requests of the zoo, ${count(forecast.called)} judged.` : "There is no forecast yet.";
  const rows = [
    ["satisfied", isKnown(found.rate) ? `${percent(found.rate)} (${interval(found.low, found.high)}) of ${count(found.judged)} judged` : "none judged yet", routed(forecast?.satisfaction, percent, interval)],
    ["cost a request", cost(found.cost_per_request, unit), routed(forecast?.cost, (value) => cost(value, unit), (low, high) => `${cost(low, unit)} to ${cost(high, unit)}`)],
    ...(forecast?.would_have_saved ? [["would have saved, of the largest's cost", "", routed(forecast.would_have_saved, percent, interval)]] : []),
    ...(reading ? [["with second_answer: auto", "", secondAnswers(reading)]] : []),
    ["answered", percent(found.answered_share), "as now"],
    ["traffic", rate(found.requests_per_hour), "as now"],
  ];
  const columns = [{ name: "figure" }, { name: "as before, now", words: true }, { name: "routed, forecast", words: true }];
  return el(
    "section",
    { id: "before", class: "card", "aria-labelledby": "before-title" },
    el("h2", { id: "before-title" }, "Served as before, next to routing"),
    el("p", { class: "note" }, `Of the newest ${count(found.requests)} requests that were served as before. ${about}`),
    table("Served as before, next to routing", forecast ? columns : columns.slice(0, 2), forecast ? rows : rows.map((row) => row.slice(0, 2)), { unseenCaption: true }),
  );
}

function routed(range, write, around) {
  return range ? `${write(range.estimate)} (${around(range.low, range.high)})` : "unknown";
}

function secondAnswers({ replaced, cost: paid, without, seconds }) {
  const saved = without > 0 ? 1 - paid / without : 0;
  const slower = isKnown(seconds) ? `${seconds.toFixed(2)} s` : "a time not known yet";
  return `${percent(replaced)} replaced, ${percent(saved)} of the cost saved, ${slower} more on average`;
}
