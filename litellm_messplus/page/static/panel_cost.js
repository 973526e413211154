// What was paid, next to what the largest model alone would have cost.

import { chartCard } from "./chart.js";
import { cost, modelName, percent } from "./format.js";
import { niceDomain } from "./plot.js";

export function costPanel() {
  const { card, update } = chartCard("Cost and savings");
  return { card, show: (series, level) => update(model(series, level)) };
}

function model({ points, axis }, level) {
  const unit = level.cost_unit;
  const compared = points.map((point) => (point.paid_at_largest > 0 ? point : null));
  const paid = compared.map((point) => point?.paid ?? null);
  const largest = compared.map((point) => point?.paid_at_largest ?? null);
  const sum = (values) => values.reduce((total, value) => total + (value ?? 0), 0);
  const saved = 1 - sum(paid) / sum(largest);
  const name = level.largest ? modelName(level.largest) : "the largest";
  return {
    ...axis,
    note: "Paid, calls that no user saw and judging included; the area up to the largest model alone is saved.",
    unit: `${unit === "usd" ? "dollars" : unit === "joule" ? "joules" : "cost"} in each step`,
    isEmpty: sum(largest) === 0,
    figure: Number.isFinite(saved) ? [`${percent(saved)} saved of ${cost(sum(largest), unit)}`] : null,
    domain: niceDomain([...paid, ...largest]),
    format: (value) => cost(value, unit),
    bands: [{ colour: "good", low: paid, high: largest }],
    lines: [
      { colour: "ink", values: largest, dashed: true },
      { colour: "good", values: paid },
    ],
    legend: [
      { name: "paid", colour: "good", kind: "stroke" },
      { name: "saved", colour: "good", kind: "faint" },
      { name: `${name} alone`, colour: "ink", kind: "dashes" },
    ],
    read: (place) => ({
      title: axis.long(place),
      lines: [
        ["paid", cost(paid[place], unit), "good"],
        [`${name} alone`, cost(largest[place], unit), "ink"],
        ["saved", percent(points[place].saved_share), null],
      ],
    }),
    table: {
      columns: [
        { name: axis.name },
        { name: "paid", number: true },
        { name: `${name} alone`, number: true },
        { name: "saved", number: true },
      ],
      rows: points.map((point, place) => [
        axis.long(place),
        cost(paid[place], unit),
        cost(largest[place], unit),
        percent(point.saved_share),
      ]),
    },
  };
}
