// What the labels prove of the chosen promise, at every look: read when somebody opens it, for it
// takes longer than the rest.

import { certificate } from "./api.js";
import { el, replace, table } from "./dom.js";
import { count, interval, percent } from "./format.js";
import { verdictChip } from "./screen_promise.js";

/** Nothing where the promise has no requests. */
export function certificateCard(level, trouble) {
  if (level.overall.satisfaction.requests === 0) {
    return null;
  }
  const body = el("div", { "aria-live": "polite" });
  const read = async (event) => {
    if (!event.target.open || body.childElementCount) {
      return;
    }
    replace(body, el("p", { class: "note" }, "Reading the labels …"));
    try {
      replace(body, ...shown(await certificate(level.zoo), level));
    } catch (error) {
      replace(body);
      event.target.open = false;
      trouble(error);
    }
  };
  return el(
    "section",
    { id: "certificate", class: "card", "aria-labelledby": "certificate-title" },
    el("h2", { id: "certificate-title" }, "Certificate"),
    el("p", { class: "note" }, "What is proved of all answered requests, however often you look."),
    el("details", { on: { toggle: read } }, el("summary", {}, "What the labels of the last 30 days prove"), body),
  );
}

function shown(found, level) {
  const promise = found.promises.find((each) => each.service_level === level.service_level);
  if (promise === undefined) {
    return [el("p", { class: "empty" }, "No request of this promise was decided in these days.")];
  }
  const claims = [[`since ${found.since}`, promise.since], [`the last ${count(found.window)} requests`, promise.last]].filter(([, claim]) => claim !== null);
  return [
    table(
      `What is proved, with a confidence of ${percent(found.level, 0)}`,
      [{ name: "requests" }, { name: "it says", words: true }, { name: "satisfied", number: true }, { name: "from, to", number: true }, { name: "promised", number: true }, { name: "users, checks", number: true }, { name: "judge", number: true }],
      claims.map(([name, claim]) => [
        `${name}: ${count(claim.requests)} requests`,
        verdictChip(claim),
        percent(claim.rate),
        interval(claim.low, claim.high),
        percent(claim.alpha),
        count(claim.told),
        count(claim.graded),
      ]),
    ),
    el("p", { class: "note" }, found.beside_status.replaceAll("`", "")),
    el("p", { class: "note" }, found.counted),
    el("h3", {}, "It rests on this"),
    el("ul", { class: "sentences" }, ...promise.since.assumed.map((words) => el("li", {}, ...marked(words)))),
    el("p", { class: "note" }, "The page to hand on: ", el("code", {}, `messplus certificate ${level.zoo}`)),
  ];
}

/** A sentence in which backticks mark code. */
const marked = (words) => words.split("`").map((part, place) => (place % 2 ? el("code", {}, part) : part));
