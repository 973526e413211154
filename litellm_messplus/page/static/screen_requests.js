// The newest requests, filtered; each leads to its explanation.

import { requests } from "./api.js";
import { csvButton } from "./csv.js";
import { el, replace, table } from "./dom.js";
import { candidateName, cost, isKnown, modelName, moment, percent, keyName } from "./format.js";

const SHOWN = 25;
const COLUMNS = ["created_at", "request_id", "served", "chosen", "arm", "status", "failure", "satisfaction", "cost", "reason", "is_exploration", "key_alias", "key_hash"];
const VERDICTS = [["", "any outcome"], ["satisfied", "satisfied"], ["unsatisfied", "not satisfied"], ["none", "no verdict"], ["failed", "failed"]];
const EXPLORATIONS = [["", "any"], ["true", "explorations"], ["false", "no explorations"]];

/** `explain` gets the request to explain. */
export function requestsScreen({ explain }) {
  const state = { level: null, rows: [], before: null, latest: 0 };
  const filters = {
    verdict: choice("filter-verdict", VERDICTS),
    model: el("input", { id: "filter-model", type: "text", list: "models", placeholder: "any model", autocomplete: "off" }),
    exploration: choice("filter-exploration", EXPLORATIONS),
    key: el("input", { id: "filter-key", type: "text", placeholder: "any key", autocomplete: "off", spellcheck: "false" }),
  };
  const trouble = el("p", { class: "field-trouble", role: "alert" });
  const parts = {
    models: el("datalist", { id: "models" }),
    list: el("div", {}),
    note: el("p", { class: "note", role: "status" }),
    more: el("button", { type: "button", class: "secondary", hidden: true }, "Look further back"),
  };
  const load = async (isMore) => {
    trouble.textContent = "";
    try {
      await read(state, filters, isMore);
    } catch (error) {
      trouble.textContent = `Not read: ${error.message}.`;
      return;
    }
    fill(state, filters, parts, { explain, load });
  };
  const form = el(
    "form",
    { class: "filters", on: { submit: (event) => { event.preventDefault(); load(false); } } },
    field("Outcome", filters.verdict),
    field("Model", filters.model),
    field("Exploration", filters.exploration),
    field("Key, by alias or hash", filters.key),
    el("button", { type: "submit", class: "secondary" }, "Show"),
  );
  for (const each of [filters.verdict, filters.exploration]) {
    each.addEventListener("change", () => load(false));
  }
  parts.more.addEventListener("click", () => load(true));
  const csv = csvButton("Requests", () => [COLUMNS, ...state.rows.map((row) => COLUMNS.map((name) => row[name]))]);
  const node = el(
    "section",
    { id: "requests", class: "screen card", "aria-labelledby": "requests-title" },
    el("div", { class: "section-head" }, el("h2", { id: "requests-title" }, "Newest requests"), csv),
    form,
    trouble,
    parts.models,
    parts.note,
    parts.list,
    parts.more,
  );
  return {
    node,
    show: (level) => {
      const isOther = state.level?.zoo !== level.zoo || state.level?.service_level !== level.service_level;
      state.level = level;
      return isOther || state.before === null || state.rows.length <= SHOWN ? load(false) : null;
    },
  };
}

function choice(id, options) {
  return el("select", { id }, ...options.map(([value, words]) => el("option", { value }, words)));
}

function field(name, input) {
  return el("p", { class: "field" }, el("label", { for: input.id }, name), input);
}

async function read(state, filters, isMore) {
  state.latest += 1;
  const { latest, level } = state;
  const found = await requests({
    zoo: level.zoo,
    service_level: level.service_level,
    model: filters.model.value.trim(),
    verdict: filters.verdict.value,
    exploration: filters.exploration.value,
    key: filters.key.value.trim(),
    before: isMore ? state.before : null,
  });
  if (latest === state.latest) { // nothing else was requested meanwhile
    state.rows = isMore ? [...state.rows, ...found.requests] : found.requests;
    state.before = found.before;
  }
}

function fill(state, filters, parts, { explain, load }) {
  const known = new Set([...parts.models.children].map((option) => option.value).concat(state.rows.flatMap(({ served, chosen }) => [served, chosen])));
  replace(parts.models, [...known].filter(Boolean).sort().map((value) => el("option", { value })));
  parts.more.hidden = state.before === null;
  parts.note.textContent = state.rows.length ? `${state.rows.length} shown, the newest first. A time leads to the explanation of its request.` : "No such requests so far back.";
  const filterKey = (key) => {
    filters.key.value = key;
    load(false);
  };
  replace(parts.list, state.rows.length ? listing(state, explain, filterKey) : []);
}

function listing(state, explain, filterKey) {
  return table(
    "Newest requests",
    [{ name: "time" }, { name: "model" }, { name: "outcome" }, { name: "cost", number: true }, { name: "reason", words: true }, { name: "key" }],
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
    return el("span", { class: "chip bad" }, row.failure ? `failed: ${row.failure.replaceAll("_", " ")}` : "failed");
  }
  if (!isKnown(row.satisfaction)) {
    return el("span", { class: "chip" }, row.status === null ? "open" : "no verdict");
  }
  if (row.satisfaction === 1 || row.satisfaction === 0) {
    return el("span", { class: `chip ${row.satisfaction ? "good" : "bad"}` }, row.satisfaction ? "satisfied" : "not satisfied");
  }
  return el("span", { class: `chip ${row.satisfaction >= 0.5 ? "good" : "bad"}` }, percent(row.satisfaction, 0));
}
