// What needs attention, the gravest of the chosen promise first, with its line of the runbook.

import { el } from "./dom.js";
import { count } from "./format.js";

const NOTICES = new Set(["thin_evidence", "unrouted"]);

/** One alarm, the others folded up below it; nothing where nothing needs attention. */
export function alarms({ alerts, unrouted }, level) {
  const notRouted = unrouted.map(({ zoo, call_type: type, answers }) => ({ kind: "unrouted", zoo, service_level: null, message: `${count(answers)} requests by ${type} were not routed` }));
  const isOwn = (alert) => alert.zoo === null || (alert.zoo === level?.zoo && [null, level.service_level].includes(alert.service_level));
  const all = [...alerts, ...notRouted];
  const [first, ...others] = [...all.filter(isOwn), ...all.filter((alert) => !isOwn(alert))].map(item);
  if (first === undefined) {
    return null;
  }
  return el(
    "section",
    { class: "alarms", "aria-labelledby": "alarms-title" },
    el("h2", { id: "alarms-title", class: "unseen" }, "What needs attention"),
    first,
    others.length ? el("details", {}, el("summary", {}, `${count(others.length)} more`), ...others) : null,
  );
}

function item(alert) {
  return el(
    "p",
    { class: NOTICES.has(alert.kind) ? "alarm notice" : "alarm" },
    el("b", {}, subject(alert)),
    el("span", {}, alert.message),
    alert.do ? el("span", { class: "to-do" }, alert.do.startsWith("messplus ") ? el("code", {}, alert.do) : alert.do, ` (runbook: ${alert.kind})`) : null,
  );
}

function subject({ zoo, service_level: level }) {
  return [zoo, level].filter(Boolean).join(", ") || "MESS+";
}
