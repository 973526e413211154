// What became of the conversations of a promise: how long they are, what holds them, what was lost.

import { el, table } from "./dom.js";
import { cost, count, percent } from "./format.js";

const HELD = { tool_loop: "in an open tool loop", warm: "where the prompt cache is warm", state: "with state of one provider" };
const BROKEN = { trouble: "in trouble, a better model took over", lost: "lost: no deployment of the model was there", unknown: "unknown who had answered" };

/** Nothing where no conversation of the promise goes on: a single request counts as one too. */
export function conversationsPanel(level, found) {
  const reasons = found === undefined ? [] : Object.entries({ ...HELD, ...BROKEN }).filter(([reason]) => found.holds[reason] > 0);
  if (reasons.length === 0 && !(found?.turns > 1)) {
    return null;
  }
  const share = (reasons) => Object.keys(reasons).reduce((sum, reason) => sum + found.holds[reason], 0) / found.requests;
  const long = found.turns === null ? "" : ` of ${found.turns.toFixed(1)} turns and ${cost(found.cost, level.cost_unit)} on average`;
  return el(
    "section",
    { id: "conversations", class: "card", "aria-labelledby": "conversations-title" },
    el("h2", { id: "conversations-title" }, "Conversations"),
    el(
      "p",
      { class: "note" },
      `Of the newest requests, ${count(found.requests)} are of conversations; ${count(found.conversations)} began${long}. ${percent(share(HELD))} were held, ${count(found.switches)} times the model changed.`,
    ),
    reasons.length
      ? table(
          "Why requests were held, or held no longer",
          [{ name: "why", words: true }, { name: "requests", number: true }],
          reasons.map(([reason, words]) => [words, count(found.holds[reason])]),
        )
      : null,
  );
}
