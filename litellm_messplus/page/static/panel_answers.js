// What answers show beyond their prompts: how far that is believed, and which were replaced.

import { el, table } from "./dom.js";
import { count, modelName, number, percent, plural } from "./format.js";
import { data, reliability } from "./panel_calibration.js";

/** Nothing before the first answer. */
export function answersPanel(zoos, level) {
  const zoo = zoos.find((each) => each.zoo === level.zoo);
  if (zoo === undefined) {
    return null;
  }
  const compared = zoo.models.map((each) => each.calibration).filter((each) => each !== null);
  return el(
    "section",
    { id: "answers", class: "card", "aria-labelledby": "answers-title" },
    el("h2", { id: "answers-title" }, "Answers that are read"),
    el("p", { class: "note" }, trust(zoo)),
    compared.length ? el("div", { class: "reliabilities" }, ...compared.map(reliability)) : null,
    models(zoo),
    compared.length ? data(compared) : null,
  );
}

function trust({ evidence, shared, own }) {
  return evidence > 0
    ? `What answers look like predicts labels better than their prompts by ${number(evidence)} nats: ${percent(shared, 0)} of what they show of all models is believed, ${percent(own, 0)} of each model's own.`
    : "What answers look like has not predicted labels better than their prompts yet.";
}

function models(zoo) {
  const columns = [{ name: "model" }, ...["answers seen", "shift of log-odds", "nats a label", "replaced", "their cost", "satisfied", "given instead"].map((name) => ({ name, number: true }))];
  const rows = zoo.models.map((each) => [
    modelName(each.candidate),
    count(each.seen),
    `${signed(each.low, 1)} to ${signed(each.high, 1)}`,
    each.calibration ? `${signed(each.calibration.reading.gain, 3)} (${plural(each.calibration.reading.calls, "label")})` : "",
    each.read ? `${count(each.replaced)} of ${count(each.read)}` : "",
    each.replaced ? percent(each.cost_share) : "",
    judged(each.of_them),
    judged(each.instead),
  ]);
  return table("What answers show beyond their prompts, and what became of those replaced", columns, rows);
}

function judged({ answers, satisfied }) {
  return answers ? `${percent(satisfied, 0)} of ${count(answers)}` : "";
}

function signed(value, digits) {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;
}
