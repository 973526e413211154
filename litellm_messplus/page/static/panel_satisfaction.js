// The rate with its interval against what was promised, over time.

import { chartCard } from "./chart.js";
import { count, interval, percent } from "./format.js";
import { niceDomain } from "./plot.js";

export function satisfactionPanel() {
  const { card, update } = chartCard("Satisfied, against the promise");
  return { card, show: (series, level) => update(model(series, level)) };
}

function model({ points, axis }, level) {
  const of = (name) => points.map((point) => point[name]);
  const promised = of("promised").map((value) => value ?? level.alpha);
  const known = points.filter((point) => point.rate !== null);
  const [low] = niceDomain([...of("low"), ...promised].filter((value) => value !== null), { zero: false });
  const last = known.at(-1);
  return {
    ...axis,
    note: "The share of verdicts that are satisfied, with its interval.",
    unit: "share satisfied, of the requests with a verdict",
    isEmpty: known.length === 0,
    figure: last ? [`${percent(last.rate)} of ${count(last.judged)} judged, at the end`] : null,
    domain: [Math.max(0, Math.min(low, 0.9)), 1],
    format: (value) => percent(value, 0),
    bands: [{ colour: "accent", low: of("low"), high: of("high") }],
    lines: [
      { colour: "ink", values: promised, dashed: true },
      { colour: "accent", values: of("rate") },
    ],
    legend: [
      { name: "satisfied", colour: "accent", kind: "stroke" },
      { name: "interval, 95 %", colour: "accent", kind: "faint" },
      { name: "promised", colour: "ink", kind: "dashes" },
    ],
    read: (place) => ({
      title: axis.long(place),
      lines: [
        ["satisfied", percent(points[place].rate), "accent"],
        ["interval", interval(points[place].low, points[place].high), "accent"],
        ["promised", percent(promised[place]), "ink"],
        ["verdicts", count(points[place].judged), null],
      ],
    }),
    table: {
      columns: [
        { name: axis.name },
        { name: "satisfied", number: true },
        { name: "interval", number: true },
        { name: "promised", number: true },
        { name: "verdicts", number: true },
      ],
      rows: points.map((point, place) => [
        axis.long(place),
        percent(point.rate),
        interval(point.low, point.high),
        percent(promised[place]),
        count(point.judged),
      ]),
    },
  };
}
