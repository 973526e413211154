// How requests were served, however they were routed: how many came and were answered, and how long
// the answers took, by model.

import { chartCard } from "./chart.js";
import { el, replace, table } from "./dom.js";
import { candidateName, count, isKnown, modelName, percent, rate, seconds, span } from "./format.js";
import { FEWEST } from "./panel_promises.js";
import { niceDomain } from "./plot.js";

export function trafficPanel() {
  const { card, update } = chartCard("Traffic and answers");
  return { card, show: ({ service, clock }, level) => update(traffic(service, clock, level)) };
}

export function latencyPanel() {
  const { card, update } = chartCard("Latency");
  const models = el("div", {});
  card.append(models);
  return {
    card,
    show: ({ service, clock }) => {
      update(latency(service, clock));
      replace(models, byModel(service));
    },
  };
}

function traffic({ points, step_seconds: step }, clock, level) {
  const sum = (name) => points.reduce((total, point) => total + point[name], 0);
  const [answered, failed, before] = [sum("answered"), sum("failed"), sum("as_before")];
  const shown = [["answered", "c2", (point) => point.answered], ["failed", "bad", (point) => point.failed], ["open", "c8", (point) => point.requests - point.answered - point.failed]];
  const parts = shown.filter(([, , of]) => points.some((point) => of(point) > 0));
  const share = answered + failed ? `${percent(answered / (answered + failed))} of ${count(answered + failed)} answered` : "none has ended";
  const columns = [...shown.slice(0, 2).map(([name]) => name), "answered share", ...(before ? ["served as before"] : [])];
  return {
    ...clock,
    note: `Requests in steps of ${span(step)}${before ? ", those served as before too" : ""}. Now ${rate(level.requests_per_hour)}.`,
    unit: `requests in ${span(step)}`,
    isEmpty: points.every((point) => point.requests === 0),
    figure: answered < FEWEST * (answered + failed) ? [el("span", { class: "failed" }, share)] : [share],
    domain: niceDomain(points.map((point) => point.requests), { whole: true }),
    format: count,
    bars: parts.map(([, colour, of]) => ({ colour, values: points.map(of) })),
    legend: parts.map(([name, colour]) => ({ name, colour })),
    read: (place) => ({
      title: clock.long(place),
      lines: [...parts.map(([name, colour, of]) => [name, count(of(points[place])), colour]), ["answered share", shareAnswered(points[place]), null]],
    }),
    table: {
      columns: [{ name: clock.name }, ...columns.map((name) => ({ name, number: true }))],
      rows: points.map((point, place) => [clock.long(place), count(point.answered), count(point.failed), shareAnswered(point), ...(before ? [count(point.as_before)] : [])]),
    },
  };
}

function shareAnswered({ answered, failed }) {
  return answered + failed ? percent(answered / (answered + failed)) : "–";
}

function latency({ points, requests, latency: models }, clock) {
  const of = (name) => points.map((point) => point[name]);
  const lines = [["median", "accent", of("median_seconds")], ["95th percentile", "c3", of("p95_seconds")]];
  return {
    ...clock,
    note: `Seconds from a call to the end of its answer, of the newest ${count(requests)} requests.`,
    unit: "seconds of an answer",
    isEmpty: models.length === 0,
    isPlain: points.every((point) => point.median_seconds === null), // a longer range has no percentiles
    figure: null,
    domain: niceDomain(lines.flatMap(([, , values]) => values)),
    format: seconds,
    lines: lines.map(([, colour, values]) => ({ colour, values })),
    legend: lines.map(([name, colour]) => ({ name, colour, kind: "stroke" })),
    read: (place) => ({ title: clock.long(place), lines: lines.map(([name, colour, values]) => [name, isKnown(values[place]) ? seconds(values[place]) : "–", colour]) }),
    table: {
      columns: [{ name: clock.name }, ...lines.map(([name]) => ({ name, number: true }))],
      rows: points.map((_, place) => [clock.long(place), ...lines.map(([, , values]) => (isKnown(values[place]) ? seconds(values[place]) : "–"))]),
    },
  };
}

function byModel({ latency: models }) {
  return table(
    "By model",
    [{ name: "model" }, { name: "answers", number: true }, { name: "median", number: true }, { name: "95th percentile", number: true }],
    models.map((each) => [el("span", { title: candidateName(each.model) }, modelName(each.model)), count(each.answers), seconds(each.median_seconds), seconds(each.p95_seconds)]),
  );
}
