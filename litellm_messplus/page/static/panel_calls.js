// Which share of the served calls each model had.

import { chartCard } from "./chart.js";
import { candidateName, count, modelName, percent } from "./format.js";

const COLOURS = 8;

export function callsPanel() {
  const { card, update } = chartCard("Calls per model");
  return { card, show: (series) => update(model(series)) };
}

/** The colour of each candidate, the same in every chart. */
export function colours(points) {
  const names = new Set(points.flatMap((point) => [...Object.keys(point.served), ...Object.keys(point.explored)]));
  return new Map([...names].sort((a, b) => !a - !b || (a < b ? -1 : 1)).map((name, place) => [name, `c${(place % COLOURS) + 1}`]));
}

function model({ points, axis }) {
  const names = [...colours(points)].filter(([name]) => points.some((point) => point.served[name]));
  const totals = points.map((point) => Object.values(point.served).reduce((total, calls) => total + calls, 0));
  const share = (name, place) => (totals[place] ? (points[place].served[name] ?? 0) / totals[place] : 0);
  const tried = points.reduce(
    (total, point) => total + Object.values(point.explored).reduce((sum, calls) => sum + calls, 0),
    0,
  );
  return {
    ...axis,
    note: "Of the calls that users saw; a probe of another model is one of them.",
    unit: "share of the served calls",
    isEmpty: names.length === 0,
    figure: [`${count(totals.reduce((sum, calls) => sum + calls, 0))} served, ${count(tried)} more explored`],
    domain: [0, 1],
    format: (value) => percent(value, 0),
    bars: names.map(([name, colour]) => ({ colour, values: points.map((_, place) => share(name, place)) })),
    legend: names.map(([name, colour]) => ({ name: modelName(name), colour })),
    read: (place) => ({
      title: axis.long(place),
      lines: names.map(([name, colour]) => [
        modelName(name),
        `${percent(share(name, place), 0)} (${count(points[place].served[name] ?? 0)})`,
        colour,
      ]),
    }),
    table: {
      columns: [{ name: axis.name }, ...names.map(([name]) => ({ name: candidateName(name), number: true }))],
      rows: points.map((point, place) => [axis.long(place), ...names.map(([name]) => count(point.served[name] ?? 0))]),
    },
  };
}
