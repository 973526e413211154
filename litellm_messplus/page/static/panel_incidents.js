// Which keys stand behind failures, late decisions, labels of checks and held verdicts.

import { el, table } from "./dom.js";
import { count, keyName } from "./format.js";

/** Nothing where no key of the zoo caused any. */
export function incidentsPanel(keys) {
  if (keys.length === 0) {
    return null;
  }
  const all = [["requests", "requests"], ["failed", "failed"], ["late", "late"], ["checks", "checks"], ["unsatisfied checks", "unsatisfied_checks"], ["verdicts held", "held"]];
  const columns = all.filter(([, name]) => keys.some((key) => key[name] > 0));
  return el(
    "section",
    { id: "incidents", class: "card", "aria-labelledby": "incidents-title" },
    el("h2", { id: "incidents-title" }, "Keys"),
    el("p", { class: "note" }, "Who stands behind failures, late decisions, labels of checks and held verdicts, among the newest requests of the zoo."),
    table(
      "The keys that caused most",
      [{ name: "key" }, ...columns.map(([name]) => ({ name, number: true }))],
      keys.map((key) => [
        keyName(key),
        ...columns.map(([, name]) => count(key[name])),
      ]),
    ),
  );
}
