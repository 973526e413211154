// How many requests each rule before the choice has gated.

import { el, table } from "./dom.js";
import { count } from "./format.js";

/** Nothing where no rule has gated a request. */
export function rulesPanel(rules) {
  const found = Object.entries(rules);
  if (found.length === 0) {
    return null;
  }
  return el(
    "section",
    { id: "rules", class: "card", "aria-labelledby": "rules-title" },
    el("h2", { id: "rules-title" }, "Rules"),
    el("p", { class: "note" }, "Of the newest requests of this promise: those that a rule before the choice sent to its candidates."),
    table(
      "Requests by rule",
      [{ name: "rule", words: true }, { name: "requests", number: true }],
      found.map(([rule, requests]) => [rule.replace(/^first: /, ""), count(requests)]),
      { unseenCaption: true },
    ),
  );
}
