// The newest requests, filtered; each leads to its explanation.

import { requests } from "./api.js";
import { el, replace, table } from "./dom.js";
import { candidateName, cost, isKnown, modelName, moment, percent, keyName } from "./format.js";

const VERDICTS = [["", "any verdict"], ["satisfied", "satisfied"], ["unsatisfied", "not satisfied"], ["none", "no verdict"], ["failed", "failed"]];
const EXPLORATIONS = [["", "any"], ["true", "explorations"], ["false", "no explorations"]];

/** `trouble` gets errors, `explain` the request to explain. */
export function requestsPanel({ trouble, explain }) {
  const state = { level: null, rows: [], before: null, latest: 0 };
  const filters = {
    model: el("input", { id: "filter-model", type: "text", list: "models", placeholder: "any model", autocomplete: "off" }),
    verdict: choice("filter-verdict", VERDICTS),
    exploration: choice("filter-exploration", EXPLORATIONS),
    key: el("input", { id: "filter-key", type: "text", placeholder: "any key", autocomplete: "off", spellcheck: "false" }),
  };
  const parts = {
    models: el("datalist", { id: "models" }),
    list: el("div", {}),
    note: el("p", { class: "note", role: "status" }),
    more: el("button", { type: "button", class: "secondary", hidden: true }, "Look further back"),
  };
  const load = (isMore) => show(state, filters, parts, { isMore, trouble, explain });
  const form = el(
    "form",
    { class: "filters", on: { submit: (event) => { event.preventDefault(); load(false); } } },
    field("Model", filters.model),
    field("Verdict", filters.verdict),
    field("Exploration", filters.exploration),
    field("Key, by alias or hash", filters.key),
    el("button", { type: "submit", class: "secondary" }, "Show"),
  );
  for (const each of [filters.verdict, filters.exploration]) {
    each.addEventListener("change", () => load(false));
  }
  parts.more.addEventListener("click", () => load(true));
  const card = el(
    "section",
    { id: "requests", class: "card", "aria-labelledby": "requests-title" },
    el("h2", { id: "requests-title" }, "Newest requests"),
    form,
    parts.models,
    parts.note,
    parts.list,
    parts.more,
  );
  parts.card = card;
  return {
    card,
    show: (level, models) => {
      const isOther = state.level?.zoo !== level.zoo || state.level?.service_level !== level.service_level;
      state.level = level;
      replace(parts.models, models.filter(Boolean).map((value) => el("option", { value })));
      return isOther ? load(false) : null;
    },
  };
}

function choice(id, options) {
  return el("select", { id }, ...options.map(([value, words]) => el("option", { value }, words)));
}

function field(name, input) {
  return el("p", { class: "field" }, el("label", { for: input.id }, name), input);
}

async function show(state, filters, parts, { isMore, trouble, explain }) {
  state.latest += 1;
  const { latest, level } = state;
  let found;
  try {
    found = await requests({
      zoo: level.zoo,
      service_level: level.service_level,
      model: filters.model.value.trim(),
      verdict: filters.verdict.value,
      exploration: filters.exploration.value,
      key: filters.key.value.trim(),
      before: isMore ? state.before : null,
    });
  } catch (error) {
    trouble(error);
    return;
  }
  if (latest !== state.latest) {
    return; // something else was requested meanwhile
  }
  state.rows = isMore ? [...state.rows, ...found.requests] : found.requests;
  state.before = found.before;
  const isAny = Object.values(filters).every((input) => input.value === "");
  parts.card.hidden = isAny && state.rows.length === 0 && found.before === null; // there is nothing to look for
  parts.more.hidden = found.before === null;
  parts.note.textContent = state.rows.length ? `${state.rows.length} shown, the newest first. A time leads to the explanation of its request.` : "No such requests so far back.";
  replace(parts.list, state.rows.length ? listing(state, explain, (key) => byKey(filters, parts, state, key, { trouble, explain })) : []);
}

function byKey(filters, parts, state, key, handlers) {
  filters.key.value = key;
  show(state, filters, parts, { isMore: false, ...handlers });
}

function listing(state, explain, filterKey) {
  return table(
    "Newest requests",
    [{ name: "time" }, { name: "model" }, { name: "verdict" }, { name: "cost", number: true }, { name: "reason", words: true }, { name: "key" }],
    state.rows.map((row) => [
      el(
        "button",
        { type: "button", class: "link", "aria-label": `${moment(row.created_at, "seconds")}: explain this request`, on: { click: () => explain(row.request_id) } },
        moment(row.created_at, "seconds"),
      ),
      model(row),
      verdict(row),
      cost(row.cost, state.level.cost_unit),
      row.reason,
      row.key_hash ? keyButton(row, filterKey) : "none",
    ]),
    { unseenCaption: true },
  );
}

function keyButton(row, filterKey) {
  const key = row.key_alias ?? row.key_hash;
  return el("button", { type: "button", class: "link", title: "Show this key's requests", on: { click: () => filterKey(key) } }, keyName(row));
}

function model(row) {
  const isOther = row.served !== null && row.served !== row.chosen;
  const choice = row.chosen === "litellm" ? "LiteLLM's own choice" : `${modelName(row.chosen)} chosen`;
  const name = row.served ?? row.chosen;
  return el(
    "span",
    { class: "chips" },
    el("span", { title: candidateName(name) }, modelName(name)),
    isOther ? el("span", { class: "chip open" }, choice) : null,
    row.arm === "before" ? el("span", { class: "chip" }, "as before") : null,
    row.is_exploration ? el("span", { class: "chip info" }, "exploration") : null,
  );
}

function verdict(row) {
  if (row.status === "failure") {
    return el("span", { class: "chip bad" }, "failed");
  }
  if (!isKnown(row.satisfaction)) {
    return el("span", { class: "chip" }, "none");
  }
  if (row.satisfaction === 1 || row.satisfaction === 0) {
    return el("span", { class: `chip ${row.satisfaction ? "good" : "bad"}` }, row.satisfaction ? "satisfied" : "not satisfied");
  }
  return el("span", { class: `chip ${row.satisfaction >= 0.5 ? "good" : "bad"}` }, percent(row.satisfaction, 0));
}
