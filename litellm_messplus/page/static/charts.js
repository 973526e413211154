// Charts by uPlot, one hover over all of them: what the cursor is on stands in every legend. A chart
// is a figure with a heading, a legend, the drawing, and the same data as a table and as CSV.

import { csvButton } from "./csv.js";
import { el, replace, table } from "./dom.js";
import { isKnown, moment } from "./format.js";

const { uPlot } = window;
const SYNC = "page";
const UTC = "Etc/UTC";
const DAY = 86_400;
const TIMES = [
  [365 * DAY, "{YYYY}", null, null, null, null, null, null, 1],
  [28 * DAY, "{MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [DAY, "{D} {MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [60, "{HH}:{mm}", null, null, "\n{D} {MMM}", null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", null, null, "\n{D} {MMM}", null, null, null, 1],
];
const FONT = "12px system-ui, sans-serif";
const MARKS = 8;
const shown = new Set();
let made = 0;

new MutationObserver(() => shown.forEach((state) => state.drawn?.redraw())).observe(document.documentElement, { attributeFilter: ["data-theme"] });

/** The colour of a name in the style, as it is now. */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/**
 * A card that holds a chart; `update(model)` shows other data in it, or hides it without a model.
 *
 * A model has `times` (ISO, the beginning of each step), a `step` in seconds, `series` [{name, colour, values, write,
 * kind}] where a kind is `line`, `dashed`, `edge` of a band, or `bar`, which stack; `bands` [{high, low, colour}] between
 * series by place; `marks` [{at, is_alarm}]; `format` of the axis, its `domain`, and a `note`.
 */
export function chartCard(title) {
  made += 1;
  const id = `chart-${made}`;
  const state = {
    title,
    at: el("span", { class: "chart-at" }),
    legend: el("ul", { class: "legend" }),
    plot: el("div", { class: "plot", tabindex: "0", role: "group", "aria-label": `Chart: ${title}. The arrow keys move through its points; the data is below as a table.` }),
    live: el("p", { class: "unseen", "aria-live": "polite" }),
    note: el("p", { class: "note" }),
    data: el("div", {}),
    model: null,
    drawn: null,
  };
  const details = el("details", { on: { toggle: () => fillTable(state, details) } }, el("summary", {}, "Data as a table"), state.data);
  const heading = el("h3", { id }, title);
  state.card = el(
    "section",
    { class: "card chart", "aria-labelledby": id, hidden: true },
    el("div", { class: "chart-head" }, heading, state.at),
    state.legend,
    state.plot,
    state.live,
    state.note,
    el("div", { class: "chart-foot" }, details, csvButton(title, () => csvOf(state))),
  );
  state.plot.addEventListener("keydown", (event) => step(state, event));
  state.plot.addEventListener("blur", () => shown.forEach((each) => each.drawn?.setCursor({ left: -10, top: -10 })));
  new ResizeObserver(() => resize(state)).observe(state.plot);
  const update = (model) => {
    state.model = model;
    state.card.hidden = model === null;
    if (model === null) {
      remove(state);
      return;
    }
    state.title = heading.textContent = model.title ?? title;
    state.note.textContent = model.note ?? "";
    remove(state);
    resize(state);
    read(state, null);
    fillTable(state, details);
  };
  return { card: state.card, update };
}

/** The newest marks of a range in the order of their times, models that answer worse among them. */
export function marksOf({ points, marks }, { zoo, changes }) {
  const falls = changes.filter((each) => each.zoo === zoo && each.after < each.before).map(({ since, candidate }) => ({ at: since, is_alarm: true, words: `${candidate} seems to answer worse` }));
  return [...marks, ...falls].filter(({ at }) => at >= points[0]?.at).sort((a, b) => (a.at < b.at ? -1 : 1)).slice(-MARKS);
}

/** The part of a model that is the same for all charts of a range. */
export function timed(found, level) {
  return { times: found.points.map((point) => point.at), step: found.step_seconds, marks: marksOf(found, level) };
}

function remove(state) {
  state.drawn?.destroy();
  state.drawn = null;
  shown.delete(state);
}

function resize(state) {
  const size = { width: state.plot.clientWidth, height: state.plot.clientHeight };
  if (state.model === null || !size.width || !size.height) {
    return;
  }
  if (state.drawn === null) {
    state.drawn = new uPlot(options(state, size), dataOf(state.model), state.plot);
    shown.add(state);
  } else {
    state.drawn.setSize(size);
  }
}

function dataOf({ times, series }) {
  const below = times.map(() => 0);
  const values = series.map((each) => (each.kind === "bar" ? each.values.map((value, place) => (below[place] += value ?? 0)) : each.values));
  const isStacked = series.some((each) => each.kind === "bar");
  // What lies on top of the others reaches down to the ground, so it is drawn first.
  return [times.map((at) => Date.parse(at) / 1000), ...(isStacked ? values.reverse() : values)];
}

function options(state, size) {
  const { model } = state;
  const isStacked = model.series.some((each) => each.kind === "bar");
  const series = model.series.map(drawnAs);
  const axis = { stroke: () => colour("faint"), font: FONT, ticks: { show: false } };
  return {
    ...size,
    padding: [16, 12, 0, 4],
    legend: { show: false },
    tzDate: (seconds) => uPlot.tzDate(new Date(1000 * seconds), UTC),
    cursor: { y: false, sync: { key: SYNC }, drag: { x: false, y: false }, points: { show: !isStacked } },
    scales: {
      x: { range: (_, first, last) => [first - model.step / 2, last + model.step / 2] },
      y: { range: (_, low, high) => model.domain ?? [Math.min(low, 0), high > 0 ? 1.08 * high : 1] },
    },
    axes: [
      { ...axis, values: TIMES, grid: { show: false }, size: 40, gap: 8 },
      { ...axis, values: (_, ticks) => ticks.map(model.format), grid: { stroke: () => colour("grid"), width: 1 }, size: 62 },
    ],
    series: [{}, ...(isStacked ? series.reverse() : series)],
    bands: model.bands?.map(({ high, low, colour: name }) => ({ series: [high + 1, low + 1], fill: () => colour(name) })),
    hooks: { draw: [(drawn) => drawMarks(drawn, model.marks ?? [])], setCursor: [(drawn) => read(state, drawn.cursor.idx)] },
  };
}

function drawnAs({ colour: name, kind }) {
  if (kind === "bar") {
    return { fill: () => colour(name), width: 0, paths: uPlot.paths.bars({ size: [0.82, 42] }), points: { show: false } };
  }
  const isLine = kind === undefined;
  const stroke = () => (kind === "edge" ? "transparent" : colour(name));
  return { stroke, width: isLine ? 2 : 1.5, dash: kind === "dashed" ? [5, 4] : undefined, spanGaps: true, points: isLine ? { size: 5 } : { show: false } };
}

/** A line for each mark, with its number in the list below the charts. */
function drawMarks(drawn, marks) {
  const { ctx, bbox } = drawn;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.font = `bold ${11 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  marks.forEach(({ at, is_alarm: isAlarm }, place) => {
    const x = Math.min(Math.max(drawn.valToPos(Date.parse(at) / 1000, "x", true), bbox.left), bbox.left + bbox.width);
    ctx.strokeStyle = ctx.fillStyle = colour(isAlarm ? "bad" : "info");
    ctx.lineWidth = ratio;
    ctx.setLineDash([3 * ratio, 3 * ratio]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.fillText(String(place + 1), x, bbox.top - 4 * ratio);
  });
  ctx.restore();
}

/** Show the values at a place in the legend; without one, those of the newest step. */
function read(state, place) {
  const { model } = state;
  const known = model.times.map((_, at) => at).filter((at) => model.series.some((each) => isKnown(each.values[at])));
  const at = isKnown(place) ? place : known.at(-1);
  const items = model.series
    .filter((each) => each.write)
    .map((each) => [each, isKnown(each.values[at]) ? each.write(each.values[at], at) : "–"]);
  replace(
    state.legend,
    items.map(([each, value]) => el("li", {}, el("span", { class: `swatch ${each.kind ?? "line"} mark-${each.colour}`, "aria-hidden": "true" }), each.name, el("b", {}, value))),
  );
  state.at.textContent = at === undefined ? "" : when(model, at);
  return `${state.at.textContent}: ${items.map(([each, value]) => `${each.name} ${value}`).join(", ")}`;
}

function when({ times, step: seconds }, place) {
  return moment(times[place], seconds >= DAY ? "day" : seconds < 60 ? "seconds" : "both");
}

function step(state, event) {
  const last = (state.model?.times.length ?? 0) - 1;
  const now = state.drawn?.cursor.idx ?? (event.key === "ArrowLeft" ? last + 1 : -1);
  const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key];
  if (to === undefined || last < 0) {
    return;
  }
  event.preventDefault();
  const place = Math.min(last, Math.max(0, to));
  const left = state.drawn.valToPos(state.drawn.data[0][place], "x");
  shown.forEach((each) => each.drawn.setCursor({ left, top: 0 }));
  state.live.textContent = read(state, place);
}

function fillTable(state, details) {
  if (details.open && state.model !== null) {
    const { model } = state;
    const columns = model.series.filter((each) => each.write);
    const rows = model.times.map((_, at) => [when(model, at), ...columns.map((each) => (isKnown(each.values[at]) ? each.write(each.values[at], at) : "–"))]);
    replace(state.data, table(state.title, [{ name: "from, UTC" }, ...columns.map(({ name }) => ({ name, number: true }))], rows, { unseenCaption: true }));
  }
}

function csvOf({ model }) {
  return [["from", ...model.series.map(({ name }) => name)], ...model.times.map((at, place) => [at, ...model.series.map((each) => each.values[place])])];
}
