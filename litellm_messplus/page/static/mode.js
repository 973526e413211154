// How far the chosen promise's zoo is switched on, who set that and why, and a form that changes it. What is changed names the revision that was read.

import { changeZoo, zoo as readZoo } from "./api.js";
import { el, replace } from "./dom.js";
import { isKnown, moment, percent, shortId } from "./format.js";

const MODES = [["watch", "watch: serve as before, decide aside"], ["canary", "canary: route a share"], ["on", "on: route all"]];
const CHIPS = { watch: "info", canary: "open", on: "good" };
const LONGEST_REASON = 1000;

/** The card; `show` reads the zoo of a level, but never under the hands of a person who fills the form in. */
export function modeCard() {
  const state = { zoo: null, latest: 0 };
  const title = el("h2", { id: "mode-title", tabindex: "-1" }, "Mode");
  const note = el("p", { class: "note", role: "status" });
  const body = el("div", {});
  const card = el("section", { id: "mode", class: "card mode", "aria-labelledby": "mode-title" }, title, body, note);

  async function read() {
    state.latest += 1;
    const { latest, zoo } = state;
    let parts;
    try {
      parts = shown(await readZoo(zoo), { changed, read });
    } catch (error) {
      parts = [el("p", { class: "note" }, `The mode of ${zoo} cannot be shown: ${error.message}.`)];
    }
    if (latest === state.latest) {
      replace(body, ...parts);
    }
  }

  function changed(found) {
    state.latest += 1; // what is read meanwhile is older
    if (found.zoo === state.zoo) {
      replace(body, ...shown(found, { changed, read }));
      note.textContent = `Changed to ${found.mode}. All workers know it within two seconds.`;
      title.focus(); // the button that had the focus is gone
    }
  }

  function show(level) {
    const isOther = state.zoo !== level.zoo;
    if (!isOther && body.querySelector("details[open]")) {
      return;
    }
    state.zoo = level.zoo;
    if (isOther) {
      replace(body);
      note.textContent = "";
    }
    read();
  }

  return { card, show };
}

function shown(found, handlers) {
  return [
    el("p", {}, el("span", { class: `chip ${CHIPS[found.mode]}` }, found.mode), ` ${inWords(found)}`),
    found.is_returned ? el("p", { class: "note" }, "It went back by itself, and stays so until somebody changes it.") : null,
    el("dl", { class: "summary" }, ...facts(found).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    el("details", {}, el("summary", {}, "Change the mode"), form(found, handlers)),
  ];
}

function inWords({ zoo, mode, share, before }) {
  const others = before === "litellm" ? "LiteLLM's own choice" : before;
  if (mode === "on") {
    return `All requests of ${zoo} are routed.`;
  }
  const routed = mode === "canary" ? `${percent(share)} of the conversations of ${zoo} are routed; the others are` : `Requests of ${zoo} are`;
  return `${routed} served by ${others}.`;
}

function facts(found) {
  const by = found.by.length > 20 ? `key ${shortId(found.by)}` : found.by;
  return [
    ...(found.before ? [["Before", found.before]] : []),
    ["Set by", isKnown(found.at) ? `${by}, ${moment(found.at, "full")}` : by],
    ["Why", found.reason || "no reason was given"],
  ];
}

/** `handlers.changed` gets the zoo as it is after a change; `handlers.read` reads it again. */
function form(found, handlers) {
  const inputs = {
    mode: select("mode-mode", MODES, found.mode),
    share: el("input", { id: "mode-share", type: "text", inputmode: "decimal", value: found.share, autocomplete: "off", "aria-describedby": "mode-trouble" }),
    before: select("mode-before", befores(found), found.before ?? ""),
    reason: el("input", { id: "mode-reason", type: "text", maxlength: LONGEST_REASON, autocomplete: "off" }),
  };
  const trouble = el("p", { class: "field-trouble", role: "alert", id: "mode-trouble" });
  const again = el("button", { type: "button", class: "secondary", hidden: true, on: { click: handlers.read } }, "Read it again");
  return el(
    "form",
    { class: "filters", on: { submit: (event) => submit(event, found, inputs, { trouble, again }, handlers) } },
    field("Mode", inputs.mode),
    field("Share under canary, above 0 to 1", inputs.share),
    field("What serves the others", inputs.before),
    field("Reason", inputs.reason),
    el("button", { type: "submit", class: "primary" }, "Change"),
    again,
    trouble,
  );
}

async function submit(event, found, inputs, { trouble, again }, handlers) {
  event.preventDefault();
  trouble.textContent = "";
  const wanted = {
    revision: found.revision,
    mode: inputs.mode.value,
    share: inputs.share.value.trim() || null,
    before: inputs.before.value || null,
    reason: inputs.reason.value.trim(),
  };
  const button = event.submitter;
  button.disabled = true; // two presses are one change
  let changed;
  try {
    changed = await changeZoo(found.zoo, wanted);
  } catch (error) {
    trouble.textContent = `Not changed: ${error.message}.`;
    again.hidden = false;
    return;
  } finally {
    button.disabled = false;
  }
  handlers.changed(changed);
}

/** What may serve the others. What is set cannot be taken away, only replaced. */
function befores({ before, candidates, groups }) {
  const own = [...candidates.map((name) => [name, name]), ...groups.map((name) => [`group:${name}`, `the group ${name}`])];
  const names = [["litellm", "LiteLLM's own choice"], ...own];
  const isThere = before === null || names.some(([value]) => value === before);
  return [...(before === null ? [["", "nothing"]] : []), ...(isThere ? [] : [[before, before]]), ...names];
}

function select(id, options, chosen) {
  return el("select", { id }, ...options.map(([value, words]) => el("option", { value, selected: value === chosen }, words)));
}

function field(name, input) {
  return el("p", { class: "field" }, el("label", { for: input.id }, name), input);
}
