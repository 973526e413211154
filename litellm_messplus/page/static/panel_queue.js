// The virtual queue: what is owed to the promise, in requests.

import { chartCard } from "./chart.js";
import { count, isKnown, number, owed } from "./format.js";
import { niceDomain } from "./plot.js";

export function queuePanel() {
  const { card, update } = chartCard("The queue");
  return { card, show: (series, level) => update(model(series, level)) };
}

function model({ points, axis }, level) {
  const values = points.map((point) => point.queue);
  return {
    ...axis,
    note: "Satisfied requests owed, the mean at the decisions; below zero is credit.",
    unit: "satisfied requests owed",
    isEmpty: values.every((value) => value === null),
    figure: isKnown(level.queue) ? [`${owed(level.queue)} requests now`] : null,
    domain: niceDomain(values),
    format: number,
    lines: [{ colour: "c7", values }],
    legend: [{ name: "queue, in requests", colour: "c7", kind: "stroke" }],
    read: (place) => ({
      title: axis.long(place),
      lines: [
        ["queue", owed(values[place]), "c7"],
        ["requests", count(points[place].requests), null],
      ],
    }),
    table: {
      columns: [{ name: axis.name }, { name: "queue", number: true }, { name: "requests", number: true }],
      rows: points.map((point, place) => [axis.long(place), owed(values[place]), count(point.requests)]),
    },
  };
}
