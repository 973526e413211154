// Which keys stand behind failures, late decisions, labels of checks and held verdicts.

import { el, table } from "./dom.js";
import { count } from "./format.js";

const SHOWN = 12;

/** Nothing where no key of the zoo caused any. */
export function incidentsPanel(keys) {
  if (keys.length === 0) {
    return null;
  }
  const columns = ["requests", "failed", "late", "checks", "unsatisfied checks", "verdicts held"];
  return el(
    "section",
    { id: "incidents", class: "card", "aria-labelledby": "incidents-title" },
    el("h2", { id: "incidents-title" }, "Keys"),
    el("p", { class: "note" }, "Who stands behind failures, late decisions, labels of checks and held verdicts, among the newest requests of the zoo."),
    table(
      "The keys that caused most",
      [{ name: "key" }, ...columns.map((name) => ({ name, number: true }))],
      keys.map((key) => [
        (key.key_hash ?? "none").slice(0, SHOWN),
        ...[key.requests, key.failed, key.late, key.checks, key.unsatisfied_checks, key.held].map(count),
      ]),
    ),
  );
}
