// One screen for a manager: what was promised and came, what that saved, how many came and failed, and
// both over time. A zoo that is watched shows what is now beside the forecast.

import { series } from "./api.js";
import { chartCard, marksOf, timed } from "./charts.js";
import { shownTable } from "./csv.js";
import { el, replace, svg } from "./dom.js";
import { cost, count, interval, isKnown, isUsed, modelName, moment, percent, promiseName } from "./format.js";

const STANDS = { "on track": "good", below: "bad", "too early": "open", failing: "bad", kept: "good", "kept within": "good", "not kept": "bad", "cannot say yet": "open" };
const FEWEST = 0.95;

/** The verdict as a chip: its colour is never alone, words say it too. */
export function verdictChip({ verdict, kept_within_points: points }) {
  return el("span", { class: `chip ${STANDS[verdict]}` }, isKnown(points) ? `kept within ${points} points` : verdict);
}

export function promiseScreen() {
  const charts = { satisfied: chartCard("Satisfied, against the promise"), money: chartCard("Cost, against always the largest") };
  const parts = { title: el("h2", { class: "unseen" }), cards: el("div", { class: "cards" }), marks: el("ol", { class: "marks" }), nothing: el("p", { class: "card empty", hidden: true }, "No requests in this range.") };
  const node = el("section", { id: "promise", class: "screen" }, parts.title, parts.cards, parts.nothing, el("div", { class: "charts" }, charts.satisfied.card, charts.money.card), parts.marks);

  async function show(level, days) {
    parts.title.textContent = promiseName(level);
    if (!isUsed(level)) {
      replace(parts.cards, firstRequest(level));
      return;
    }
    const isWatched = level.overall.satisfaction.requests === 0;
    const found = await series(level, days);
    replace(parts.cards, ...(isWatched ? [watched(level), besideCard(found.beside)] : inUse(level)));
    const { points } = found;
    parts.nothing.hidden = points.some((point) => point.requests > 0);
    charts.satisfied.update(points.some((point) => point.judged) ? satisfied(found, level) : null);
    charts.money.update(points.some((point) => point.paid_at_largest) ? money(found, level) : null);
    replace(parts.marks, marksOf(found, level).map(({ at, is_alarm: isAlarm, words }) => el("li", { class: isAlarm ? "alarmed" : "" }, el("b", {}, moment(at)), ` ${words}`)));
  }

  return { node, show };
}

function inUse(level) {
  const { said, overall } = level;
  const { satisfaction, answers, savings } = overall;
  const isFailing = answers.answered_share < FEWEST;
  const cards = [
    card("The promise", verdictChip(satisfaction), isKnown(satisfaction.rate) ? percent(satisfaction.rate) : "–", `satisfied, promised ${percent(satisfaction.promised, 0)}`, gauge(satisfaction), said.satisfied, said.advice),
    card("The money", null, savings ? cost(Math.abs(savings.saved), level.cost_unit) : "–", savings ? (savings.saved < 0 ? "more than always the largest" : "saved, labels paid") : "", null, said.money),
  ];
  const traffic = card("Traffic and failures", null, percent(answers.answered_share), "answered", null, said.traffic, null, isFailing);
  return isFailing ? [traffic, ...cards] : [...cards, traffic];
}

/** What is served as before: its promise has no figures yet. */
function watched({ as_before: found, alpha }) {
  const said = `${isKnown(found.low) ? interval(found.low, found.high) : "no verdict yet"}; ${count(found.judged)} judged of the newest ${count(found.requests)} requests, served as before: nothing is routed yet`;
  return card("Watched", el("span", { class: "chip info" }, "watched"), isKnown(found.rate) ? percent(found.rate) : "–", `satisfied now, to be promised ${percent(alpha, 0)}`, gauge({ ...found, promised: alpha }), said);
}

function card(title, chip, figure, unit, drawing, sentence, advice = null, isBad = false) {
  return el(
    "section",
    { class: "card fact" },
    el("div", { class: "fact-head" }, el("h3", {}, title), chip),
    el("p", { class: "fact-figure" }, el("strong", { class: isBad ? "failed" : "" }, figure), ` ${unit}`),
    drawing,
    el("p", { class: "fact-said" }, sentence),
    advice ? el("p", { class: "note" }, advice) : null,
  );
}

function besideCard(tables) {
  return el("section", { class: "card fact wide", id: "beside" }, ...tables.map(shownTable));
}

/** The line that makes the first request. */
function firstRequest({ zoo, alpha }) {
  const base = location.href.split("/messplus/")[0];
  const body = JSON.stringify({ model: zoo, messages: [{ role: "user", content: "What is the capital of France?" }] });
  const line = `curl ${base}/v1/chat/completions -H "Authorization: Bearer $LITELLM_MASTER_KEY" -H "Content-Type: application/json" -d '${body.replaceAll("'", "'\\''")}'`;
  return el(
    "section",
    { class: "card fact wide" },
    el("h3", {}, `No request of ${zoo} yet; promised ${percent(alpha, 0)}`),
    el("p", {}, "This makes the first one:"),
    el("pre", { tabindex: "0", role: "group", "aria-label": "Command" }, el("code", {}, line)),
    el("button", { type: "button", class: "secondary", on: { click: ({ target }) => navigator.clipboard?.writeText(line).then(() => (target.textContent = "Copied")) } }, "Copy"),
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


function satisfied(found, level) {
  const { points, is_before: isBefore } = found;
  const of = (name) => points.map((point) => point[name]);
  const promised = of("promised").map((value) => value ?? level.alpha);
  const low = Math.min(...[...of("low"), ...promised].filter(isKnown));
  return {
    ...timed(found, level),
    title: isBefore ? "Satisfied as before, against what is to be promised" : "Satisfied, against the promise",
    domain: [Math.max(0, Math.floor(10 * low - 0.2) / 10), 1],
    format: (value) => percent(value, 0),
    bands: [{ high: 0, low: 1, colour: "accent-faint" }],
    series: [
      { name: "highest, 95 %", colour: "accent", kind: "edge", values: of("high") },
      { name: "interval, 95 %", colour: "accent", kind: "edge", values: of("low"), write: (_, at) => interval(points[at].low, points[at].high) },
      { name: "promised", colour: "ink", kind: "dashed", values: promised, write: (value) => percent(value) },
      { name: "satisfied", colour: "accent", values: of("rate"), write: (value, at) => `${percent(value)} of ${count(points[at].judged)}` },
    ],
  };
}

function money(found, level) {
  const { cost_unit: unit, largest } = level;
  const { points, is_before: isBefore } = found;
  const of = (name) => points.map((point) => (point.paid_at_largest > 0 ? point[name] : null));
  const write = (value) => cost(value, unit);
  return {
    ...timed(found, level),
    title: isBefore ? "Cost as before, against always the largest" : "Cost, against always the largest",
    format: write,
    bands: [{ high: 0, low: 1, colour: "good-faint" }],
    series: [
      { name: `always ${largest ? modelName(largest) : "the largest"}`, colour: "ink", kind: "dashed", values: of("paid_at_largest"), write },
      { name: "paid, labels too", colour: "good", values: of("paid"), write },
    ],
  };
}
