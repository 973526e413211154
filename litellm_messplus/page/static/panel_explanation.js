// One request explained, in a dialog: the sentences first, then what they rest on.

import { request } from "./api.js";
import { el, replace, table } from "./dom.js";
import { candidateName, cost, isKnown, modelName, moment, number, owed, percent, promiseName } from "./format.js";

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
    found.candidates.length ? candidates(found, unit) : null,
    words("Prompt", found.request.prompt),
    found.calls.length ? calls(found, unit) : null,
    ...found.calls.map((call) => words(`Answer of ${candidateName(call.candidate)}`, call.answer)),
    found.labels.length ? labels(found) : null,
    found.prices.length ? prices(found) : null,
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
    ["promise", `${promiseName(decided)}, alpha ${number(decided.alpha)}`],
    ["served by", modelName(outcome.served ?? "")],
    ["verdict", isKnown(outcome.satisfaction) ? `${percent(outcome.satisfaction, 0)}, by ${outcome.satisfaction_kind}` : "none"],
    ["cost", cost(outcome.cost, unit)],
    ["price", number(decided.price)],
    ["queue", owed(decided.queue)],
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

function candidates(found, unit) {
  return table(
    "What was expected of each model",
    [{ name: "model" }, { name: "satisfied", number: true }, { name: "cost", number: true }, { name: "score", number: true }, { name: "in the choice" }],
    found.candidates.map((each) => [
      modelName(each.candidate),
      percent(each.satisfaction),
      cost(each.cost, unit),
      number(each.score),
      el(
        "span",
        { class: "chips" },
        each.is_chosen ? el("span", { class: "chip good" }, "chosen") : null,
        each.is_best ? el("span", { class: "chip" }, "lowest score") : null,
      ),
    ]),
  );
}

function calls(found, unit) {
  return table(
    "Calls",
    [{ name: "model" }, { name: "role" }, { name: "tokens", number: true }, { name: "cost", number: true }, { name: "seconds", number: true }, { name: "end", words: true }],
    found.calls.map((call) => [
      modelName(call.candidate ?? call.model ?? ""),
      call.role,
      `${number(call.prompt_tokens)} + ${number(call.completion_tokens)}`,
      `${cost(call.cost, unit)}, ${call.cost_source}`,
      number(call.seconds),
      call.error ?? call.status,
    ]),
  );
}

function labels(found) {
  return table(
    "Labels",
    [{ name: "source" }, { name: "value", number: true }, { name: "weight", number: true }, { name: "counts" }, { name: "comment", words: true }],
    found.labels.map((label) => [
      label.source,
      number(label.value),
      number(label.weight),
      label.counts === null ? "unknown" : label.counts ? "yes" : "no",
      label.comment ?? "",
    ]),
  );
}

function prices(found) {
  const { price } = found.request;
  return table(
    isKnown(price) ? `The lowest score at other prices; now ${number(price)}` : "The lowest score at each price",
    [{ name: "model" }, { name: "from", number: true }, { name: "to", number: true }],
    found.prices.map((range) => [modelName(range.candidate), number(range.from), isKnown(range.to) ? number(range.to) : "upwards"]),
  );
}
