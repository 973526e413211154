// What needs attention, and what passed the routing by; nothing is shown where nothing does.

import { el } from "./dom.js";
import { count } from "./format.js";

const NOTICES = new Set(["thin_evidence"]);

export function alertsPanel(alerts, unrouted) {
  const items = [
    ...alerts.map((alert) => item(subject(alert), alert.message, NOTICES.has(alert.kind))),
    ...unrouted.map(({ zoo, call_type: type, answers }) => item(zoo, `${count(answers)} requests by ${type} were not routed`, true)),
  ];
  if (items.length === 0) {
    return null;
  }
  return el(
    "section",
    { class: "alerts", "aria-labelledby": "alerts-title" },
    el("h2", { id: "alerts-title", class: "unseen" }, "Alerts"),
    el("ul", {}, ...items),
  );
}

function item(about, message, isNotice) {
  return el("li", { class: isNotice ? "alert notice" : "alert" }, el("b", {}, about), el("span", {}, message));
}

function subject(alert) {
  if (alert.zoo === null) {
    return "MESS+";
  }
  return alert.service_level === null ? alert.zoo : `${alert.zoo}, ${alert.service_level}`;
}
