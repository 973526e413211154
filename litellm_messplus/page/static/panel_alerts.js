// What needs attention; nothing is shown where nothing does.

import { el } from "./dom.js";

const NOTICES = new Set(["thin_evidence"]);

export function alertsPanel(alerts) {
  if (alerts.length === 0) {
    return null;
  }
  const items = alerts.map((alert) =>
    el(
      "li",
      { class: NOTICES.has(alert.kind) ? "alert notice" : "alert" },
      el("b", {}, subject(alert)),
      el("span", {}, alert.message),
    ),
  );
  return el(
    "section",
    { class: "alerts", "aria-labelledby": "alerts-title" },
    el("h2", { id: "alerts-title", class: "unseen" }, "Alerts"),
    el("ul", {}, ...items),
  );
}

function subject(alert) {
  if (alert.zoo === null) {
    return "MESS+";
  }
  return alert.service_level === null ? alert.zoo : `${alert.zoo}, ${alert.service_level}`;
}
