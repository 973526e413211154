// Where labels come from, the labels of each source, and what judges cost.

import { el, table } from "./dom.js";
import { cost, count, interval, isKnown, moment, percent } from "./format.js";

/** Nothing where no label came and none was paid for. */
export function labelsPanel(level, judges, labelCosts, spent, isRouted) {
  const found = level.overall.labels;
  const parts = [judgesTable(judges), spent ? whole(spent, level, isRouted) : null, costs(labelCosts)].filter(Boolean);
  if (found.sources.length + parts.length === 0 && level.overall.satisfaction.requests === 0) {
    return null;
  }
  return el(
    "section",
    { id: "labels", class: "card", "aria-labelledby": "labels-title" },
    el("h2", { id: "labels-title" }, "Labels"),
    isKnown(found.labelled_share) ? el("p", { class: "note" }, `${percent(level.overall.labels.labelled_share)} of all requests have a label, ${percent(level.overall.satisfaction.judged_share)} a verdict.`) : null,
    el("div", { class: "columns" }, sources(level), parts.length ? el("div", {}, parts) : null),
  );
}

function sources(level) {
  const found = level.overall.labels.sources;
  if (found.length === 0) {
    return level.overall.satisfaction.requests === 0 ? null : el("p", { class: "empty" }, "No labels yet: send feedback, or configure a check or a judge.");
  }
  return table(
    "What each source says, over the whole time",
    [{ name: "source" }, { name: "labelled", number: true }, { name: "satisfied", number: true }, { name: "interval", number: true }, { name: "count", number: true }],
    found.map((source) => [
      source.source,
      count(source.labelled),
      percent(source.rate),
      interval(source.low, source.high),
      count(source.counting),
    ]),
  );
}

function judgesTable(judges) {
  if (judges.length === 0) {
    return null;
  }
  return table(
    "Judges, over the whole time",
    [{ name: "judge" }, { name: "graded", number: true }, { name: "cost", number: true }, { name: "a label", number: true }, { name: "its labels", words: true }],
    judges.map((judge) => [
      judge.judge,
      count(judge.graded),
      cost(judge.cost, "usd"),
      judge.graded && isKnown(judge.cost) ? cost(judge.cost / judge.graded, "usd") : "unknown",
      judge.note,
    ]),
  );
}

/** What the zoo's labels cost, and what it saved where it routed: is learning worth its price? */
function whole(spent, level, isRouted) {
  const unit = level.cost_unit;
  if (!spent.unseen && !spent.judging) {
    return null;
  }
  return table(
    "What labels cost, of the whole zoo",
    [{ name: "what" }, { name: "today", number: true }, { name: "whole time", number: true }],
    [
      spent.unseen && ["calls that no user saw", cost(spent.unseen_today, unit), cost(spent.unseen, unit)],
      spent.judging && ["judging", cost(spent.judging_today, "usd"), cost(spent.judging, "usd")],
      isRouted && ["saved by routing, less labels of routed requests", "", cost(spent.saved, unit)],
    ].filter(Boolean),
  );
}

function costs(labelCosts) {
  if (labelCosts.length === 0) {
    return null;
  }
  const known = labelCosts.filter((each) => each.cost !== null);
  const total = known.reduce((sum, each) => sum + each.cost, 0);
  const days = table(
    "What judging cost, day by day",
    [{ name: "day" }, { name: "judge" }, { name: "gradings", number: true }, { name: "cost", number: true }],
    labelCosts.toReversed().map((each) => [moment(each.at, "day"), each.judge, count(each.gradings), cost(each.cost, "usd")]),
    { unseenCaption: true },
  );
  return el(
    "details",
    {},
    el("summary", {}, `Judging cost ${cost(total, "usd")} in the range shown`),
    days,
  );
}
