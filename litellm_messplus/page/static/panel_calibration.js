// Can the predictions be believed? Predicted against satisfied, a drawing for each candidate.

import { el, svg, table } from "./dom.js";
import { count, interval, modelName, percent, plural } from "./format.js";

const SIZE = 200;
const EDGE = 44;

/** Nothing before the first judged call. */
export function calibrationPanel(zoos, level) {
  const zoo = zoos.find((each) => each.zoo === level.zoo);
  if (zoo === undefined) {
    return null;
  }
  return el(
    "section",
    { id: "calibration", class: "card", "aria-labelledby": "calibration-title" },
    el("h2", { id: "calibration-title" }, "Calibration"),
    el(
      "p",
      { class: "note" },
      "Of the calls predicted at 70 %, were 70 % satisfied? Dots near the diagonal say yes. Of the newest judged calls; all service levels of a zoo share the predictor.",
    ),
    el("div", { class: "reliabilities" }, ...zoo.candidates.map(reliability)),
    readings(zoo),
    data(zoo.candidates),
  );
}

/** One drawing: the predictions of a candidate against the verdicts. */
function reliability({ candidate, bins }) {
  const at = (share) => EDGE + (SIZE - EDGE - 8) * share;
  const up = (share) => SIZE - at(share);
  const most = Math.max(...bins.map((bin) => bin.calls));
  const marks = [0, 0.5, 1].flatMap((share) => [
    svg("line", { class: "grid", x1: at(0), x2: at(1), y1: up(share), y2: up(share) }),
    svg("text", { class: "tick", x: at(share), y: SIZE - 10, "text-anchor": share === 1 ? "end" : "middle" }, percent(share, 0)),
    svg("text", { class: "tick", x: EDGE - 6, y: up(share) + 4, "text-anchor": "end" }, percent(share, 0)),
  ]);
  const dots = bins.flatMap((bin) => [
    svg("line", { class: "whisker", x1: at(bin.predicted), x2: at(bin.predicted), y1: up(bin.satisfied_low), y2: up(bin.satisfied_high) }),
    svg("circle", { class: "fill-accent", cx: at(bin.predicted), cy: up(bin.satisfied), r: 3 + 4 * Math.sqrt(bin.calls / most) }),
  ]);
  const name = modelName(candidate);
  return el(
    "figure",
    { class: "reliability" },
    el("figcaption", {}, el("b", {}, name), el("span", { class: "note" }, plural(bins.reduce((sum, bin) => sum + bin.calls, 0), "call"))),
    svg(
      "svg",
      { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", "aria-label": `Predicted against satisfied for ${name}; the data is below as a table.` },
      ...marks,
      svg("line", { class: "axis dashed", x1: at(0), y1: up(0), x2: at(1), y2: up(1) }),
      ...dots,
    ),
  );
}

function readings(zoo) {
  const row = (name, reading) => [
    name,
    reading.log_loss.toFixed(3),
    reading.log_loss_mean.toFixed(3),
    `${reading.gain < 0 ? "−" : "+"}${Math.abs(reading.gain).toFixed(3)}`,
    reading.reading_pays,
  ];
  return table(
    "Does reading the prompt pay?",
    [{ name: "model" }, { name: "log-loss, predicted", number: true }, { name: "running mean", number: true }, { name: "gain", number: true }, { name: "pays" }],
    [...zoo.candidates.map((each) => row(modelName(each.candidate), each.reading)), row("all", zoo.reading)],
  );
}

/** The same for all of them as a table. */
function data(candidates) {
  const rows = candidates.flatMap(({ candidate, bins }) =>
    bins.map((bin) => [
      modelName(candidate),
      percent(bin.predicted),
      percent(bin.satisfied),
      interval(bin.satisfied_low, bin.satisfied_high),
      count(bin.calls),
    ]),
  );
  const columns = [{ name: "model" }, { name: "predicted", number: true }, { name: "satisfied", number: true }, { name: "interval", number: true }, { name: "calls", number: true }];
  return el("details", {}, el("summary", {}, "Data as a table"), table("Predicted against satisfied", columns, rows, { unseenCaption: true }));
}
