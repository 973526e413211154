// The details: which models served, where labels are from and what they cost, what is proved, how far
// the zoo is switched on, and who spent.

import { details, series } from "./api.js";
import { certificateCard } from "./certificate.js";
import { chartCard, timed } from "./charts.js";
import { shownTable } from "./csv.js";
import { el, replace } from "./dom.js";
import { candidateName, count, isUsed, modelName, promiseName } from "./format.js";
import { modeCard } from "./mode.js";

const COLOURS = 8;

export function detailsScreen({ trouble }) {
  const charts = { calls: chartCard("Answers by model"), traffic: chartCard("Requests, answered and failed") };
  const mode = modeCard();
  const parts = { title: el("h2", { class: "unseen" }), sections: el("div", { class: "sections" }), certificate: el("div", {}), beside: el("div", {}) };
  const node = el("section", { id: "details", class: "screen" }, parts.title, el("div", { class: "charts" }, charts.calls.card, charts.traffic.card), parts.sections, parts.certificate, mode.card, parts.beside);
  let certified = null;

  async function show(level, days) {
    parts.title.textContent = `Details of ${promiseName(level)}`;
    mode.show(level); // shows itself what goes wrong
    if (!isUsed(level)) {
      return;
    }
    const [found, { sections }] = await Promise.all([series(level, days), details(level, days)]);
    const isEmpty = found.points.every((point) => point.requests === 0);
    charts.calls.update(isEmpty ? null : calls(found, level));
    charts.traffic.update(isEmpty ? null : traffic(found, level));
    replace(parts.sections, sections.filter((section) => section.tables.length).map(sectionCard));
    replace(parts.beside, found.beside.length ? sectionCard({ title: "Served as before", tables: found.beside }) : null);
    if (certified !== promiseName(level)) {
      certified = promiseName(level);
      replace(parts.certificate, certificateCard(level, trouble));
    }
  }

  return { node, show };
}

function sectionCard({ title, tables }) {
  const id = `section-${title.toLowerCase().replaceAll(" ", "-")}`;
  return el("section", { class: "card", id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), ...tables.map(shownTable));
}

/** The colour of a model goes by the order of first calls, which no later call changes. */
function colourOf(models, name) {
  return name === "" ? "faint" : `c${(models.indexOf(name) % COLOURS) + 1}`;
}

function calls(found, level) {
  const { points, models } = found;
  const names = [...models, ""].filter((name) => points.some((point) => point.served[name]));
  return {
    ...timed(found, level),
    note: "Of the answers that users saw.",
    format: count,
    series: names.map((name) => ({ name: modelName(candidateName(name)), colour: colourOf(models, name), kind: "bar", values: points.map((point) => point.served[name] ?? 0), write: count })),
  };
}

function traffic(found, level) {
  const { points } = found;
  const of = (name, colour, values) => ({ name, colour, kind: "bar", values: points.map(values), write: count });
  return {
    ...timed(found, level),
    note: "Open requests have not ended yet.",
    format: count,
    series: [
      of("failed", "bad", (point) => point.failed),
      of("open", "c8", (point) => point.requests - point.answered - point.failed),
      of("answered", "c2", (point) => point.answered),
    ],
  };
}
