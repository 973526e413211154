// One request explained, in a dialog: the sentences first, then what they rest on.

import { request } from "./api.js";
import { shownTable } from "./csv.js";
import { el, replace } from "./dom.js";
import { candidateName, cost, isKnown, modelName, moment, percent, promiseName } from "./format.js";

/** A dialog that is opened with an id; `trouble` gets the error where it could not be. */
export function explanationDialog(trouble) {
  const body = el("div", { class: "explanation" });
  const dialog = el(
    "dialog",
    { "aria-labelledby": "explanation-title" },
    el(
      "div",
      { class: "dialog-head" },
      el("h2", { id: "explanation-title" }, "Why this model?"),
      el("button", { type: "button", class: "secondary", on: { click: () => dialog.close() } }, "Close"),
    ),
    body,
  );
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) {
      dialog.close(); // outside of it
    }
  });
  const open = async (id, unit) => {
    try {
      const found = await request(id);
      replace(body, ...content(found, unit));
      dialog.showModal();
    } catch (error) {
      trouble(error);
    }
  };
  return { dialog, open };
}

function content(found, unit) {
  return [
    summary(found, unit),
    el("p", { class: "reason" }, el("b", {}, "Reason: "), found.reason),
    able(found.request),
    words("Prompt", found.request.prompt),
    ...found.calls.map((call) => words(`Answer of ${candidateName(call.candidate)}`, call.answer)),
    ...found.calls.map((call) => words(`Error of ${candidateName(call.candidate)}`, call.error)),
    ...found.tables.map(shownTable),
    el(
      "section",
      {},
      el("h3", {}, "All of it in words, as logged"),
      el("ul", { class: "sentences" }, ...found.sentences.map((sentence) => el("li", {}, sentence))),
    ),
  ];
}

function summary({ request: decided, outcome }, unit) {
  const facts = [
    ["decided", moment(decided.created_at, "full")],
    ["promise", `${promiseName(decided)}, ${percent(decided.alpha, 0)} promised`],
    ["served by", modelName(outcome.served ?? "")],
    ["verdict", isKnown(outcome.satisfaction) ? `${percent(outcome.satisfaction, 0)}, by ${outcome.satisfaction_kind}` : "none"],
    ["cost", cost(outcome.cost, unit)],
    ["exploration", decided.is_exploration ? "yes" : "no"],
    ["asked by", [decided.key_alias, decided.team_id, decided.user_id, decided.end_user, ...(decided.tags ?? [])].filter(isKnown).join(", ") || "not logged"],
  ];
  return el(
    "dl",
    { class: "summary" },
    ...facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))),
  );
}

/** Who could take it, where the gates distinguished the models. */
function able({ eligible, gated_by: why }) {
  if (!eligible) {
    return null;
  }
  const names = eligible.map(modelName).join(", ");
  const reasons = (why ?? []).includes("gates_failed")
    ? "it could not be found out"
    : `by ${(why ?? []).join(", ")}`;
  return el("p", { class: "reason" }, el("b", {}, "Could take it: "), `only ${names}, ${reasons}`);
}

function words(title, text) {
  if (!isKnown(text) || text === "") {
    return null;
  }
  return el(
    "section",
    { class: "words" },
    el("h3", {}, title),
    el("pre", { tabindex: "0", role: "group", "aria-label": title }, text),
  );
}
