// The page: requests the data, keeps what is chosen in the address, and hands each panel its part.

import { SignInNeeded, calibration, overview, series, signOut } from "./api.js";
import { el, replace } from "./dom.js";
import { promiseName } from "./format.js";
import { alertsPanel } from "./panel_alerts.js";
import { beforePanel } from "./panel_before.js";
import { requestAxis, timeAxis } from "./axis.js";
import { calibrationPanel } from "./panel_calibration.js";
import { callsPanel } from "./panel_calls.js";
import { certificatePanel } from "./panel_certificate.js";
import { conversationsPanel } from "./panel_conversations.js";
import { costPanel } from "./panel_cost.js";
import { explanationDialog } from "./panel_explanation.js";
import { incidentsPanel } from "./panel_incidents.js";
import { labelsPanel } from "./panel_labels.js";
import { modePanel } from "./panel_mode.js";
import { isUsed, promisesPanel } from "./panel_promises.js";
import { queuePanel } from "./panel_queue.js";
import { requestsPanel } from "./panel_requests.js";
import { satisfactionPanel } from "./panel_satisfaction.js";
import { latencyPanel, trafficPanel } from "./panel_service.js";
import { showSignIn, useCode } from "./sign_in.js";

const REFRESH_SECONDS = 30;
const RANGES = [["newest", "Newest", null], ["1", "24 h", 1], ["7", "7 days", 7], ["30", "30 days", 30], ["90", "90 days", 90], ["365", "Year", 365]];
const FEW_REQUESTS = 2000;

const content = document.getElementById("content");
const troubleLine = document.getElementById("trouble");
const state = { status: null, level: null, range: null, calibration: [], switched: null, shown: 0 };
const panels = { satisfaction: satisfactionPanel(), cost: costPanel(), traffic: trafficPanel(), latency: latencyPanel(), calls: callsPanel(), queue: queuePanel() };
const explanation = explanationDialog(trouble);
const mode = modePanel((found) => {
  state.switched = found;
  showBefore();
});
const list = requestsPanel({ trouble, explain: (id) => explanation.open(id, state.level.cost_unit) });
const nothing = el("p", { class: "card empty", hidden: true }, "No requests in this range.");
const slots = { alerts: el("div", {}), promises: el("div", {}), head: el("div", {}), before: el("div", {}), labels: el("div", {}), incidents: el("div", {}), conversations: el("div", {}), certificate: el("div", {}), calibration: el("div", {}) };

await start();

async function start() {
  let reason = null;
  try {
    await useCode();
  } catch (error) {
    reason = error.message;
  }
  await load(reason);
  setInterval(refresh, REFRESH_SECONDS * 1000);
  document.addEventListener("visibilitychange", refresh);
  document.getElementById("sign-out").addEventListener("click", leave);
  document.getElementById("sections").addEventListener("click", goTo);
}

/** Everything, from the beginning; `reason` is why signing in by a link did not work. */
async function load(reason = null) {
  try {
    state.status = await overview();
  } catch (error) {
    if (error instanceof SignInNeeded) {
      showDoor(reason);
      return;
    }
    replace(content, el("p", { class: "card empty" }, "Nothing can be shown yet."));
    trouble(error);
    content.removeAttribute("aria-busy");
    return;
  }
  readAddress();
  arrange();
  await show();
}

function showDoor(reason) {
  setSignedIn(false);
  showSignIn(content, reason, async () => {
    await load();
    document.getElementById("main").focus(); // the button that had the focus is gone
  });
  content.removeAttribute("aria-busy");
}

function setSignedIn(isIn) {
  document.getElementById("sections").hidden = !isIn;
  document.getElementById("sign-out").hidden = !isIn;
}

function arrange() {
  setSignedIn(true);
  document.getElementById("sections").hidden = state.level === null || !isUsed(state.level);
  const charts = el("div", { class: "charts" }, ...Object.values(panels).map((panel) => panel.card));
  const parts = state.level ? (isUsed(state.level) ? [slots.head, slots.before, nothing, charts, mode.card, slots.labels, slots.incidents, slots.conversations, slots.certificate, slots.calibration, list.card] : [mode.card]) : [];
  replace(content, slots.alerts, slots.promises, ...parts, explanation.dialog);
  content.removeAttribute("aria-busy");
}

/** Hand every panel what is there by now. */
async function show({ withCalibration = true } = {}) {
  showStatus();
  if (state.level === null) {
    return;
  }
  state.shown += 1;
  const { shown, level, range } = state;
  showBefore();
  mode.show(level); // shows itself what goes wrong
  if (!isUsed(level)) {
    return;
  }
  try {
    const [found] = await Promise.all([series(level, RANGES.find(([id]) => id === range)[2])]);
    if (shown !== state.shown) {
      return; // something else was chosen meanwhile
    }
    showSeries(found);
    await list.show(level, Object.keys(found.points.reduce((all, point) => ({ ...all, ...point.served }), {})).sort());
    if (withCalibration) {
      state.calibration = (await calibration()).calibration;
    }
    replace(slots.calibration, calibrationPanel(state.calibration, level));
    troubleLine.hidden = true;
  } catch (error) {
    trouble(error);
  }
}

function showStatus() {
  replace(slots.alerts, alertsPanel(state.status.alerts, state.status.unrouted));
  const hadFocus = document.activeElement?.name === "promise";
  replace(slots.promises, promisesPanel(state.status.levels, state.level, chooseLevel));
  if (hadFocus) {
    slots.promises.querySelector("input:checked")?.focus();
  }
  if (state.level !== null && slots.head.dataset.of !== `${promiseName(state.level)} ${state.range}`) {
    slots.head.dataset.of = `${promiseName(state.level)} ${state.range}`;
    replace(slots.head, head());
    replace(slots.certificate, certificatePanel(state.level, trouble));
  }
}

/** What is served as before, next to the forecast of its zoo as far as it was read. */
function showBefore() {
  const { level, switched } = state;
  replace(slots.before, beforePanel(level, switched?.zoo === level.zoo ? switched : undefined));
}

/** The promise that the panels below are about, and the range. */
function head() {
  const options = RANGES.map(([id, words]) =>
    el(
      "span",
      { class: "segment" },
      el("input", { type: "radio", name: "range", id: `range-${id}`, checked: id === state.range, on: { change: () => chooseRange(id) } }),
      el("label", { for: `range-${id}` }, words),
    ),
  );
  return el(
    "div",
    { class: "section-head" },
    el("h2", {}, promiseName(state.level)),
    el("fieldset", { class: "segments" }, el("legend", { class: "unseen" }, "Range of the charts"), ...options),
  );
}

function showSeries(found) {
  const { points, service, step_seconds: step } = found;
  const axis = step === null ? requestAxis(points) : timeAxis(points, step);
  const given = { points, axis, service, clock: timeAxis(service.points, service.step_seconds) };
  for (const panel of Object.values(panels)) {
    panel.show(given, state.level);
  }
  nothing.hidden = Object.values(panels).some((panel) => !panel.card.hidden);
  const spent = state.status.label_costs.find((each) => each.zoo === state.level.zoo);
  const isRouted = state.status.levels.some((each) => each.zoo === state.level.zoo && each.overall.answers.requests);
  const judges = state.status.judges.filter((judge) => judge.zoo === state.level.zoo);
  replace(slots.labels, labelsPanel(state.level, judges, found.label_costs, spent, isRouted));
  const { zoo, service_level: name } = state.level;
  replace(slots.incidents, incidentsPanel(state.status.incidents.filter((key) => key.zoo === zoo)));
  replace(slots.conversations, conversationsPanel(state.level, state.status.conversations.find((each) => each.zoo === zoo && each.service_level === name)));
}

function chooseLevel(level) {
  state.level = level;
  writeAddress();
  show({ withCalibration: false });
}

function chooseRange(range) {
  state.range = range;
  slots.head.dataset.of = `${promiseName(state.level)} ${range}`;
  writeAddress();
  show({ withCalibration: false });
}

async function refresh() {
  if (document.hidden || state.status === null || explanation.dialog.open) {
    return;
  }
  try {
    state.status = await overview();
  } catch (error) {
    trouble(error);
    return;
  }
  const { zoo, service_level: name } = state.level ?? {};
  const wasUsed = state.level !== null && isUsed(state.level);
  state.level = state.status.levels.find((level) => level.zoo === zoo && level.service_level === name) ?? state.status.levels[0] ?? null;
  if (state.level !== null && isUsed(state.level) !== wasUsed) {
    arrange();
  }
  await show({ withCalibration: false });
}

async function leave() {
  try {
    await signOut();
  } catch (error) {
    trouble(error);
    return;
  }
  state.status = null;
  showDoor("You are signed out.");
}

/** To a section without a change of the address, which holds what is chosen. */
function goTo(event) {
  const { section } = event.target.dataset;
  if (section !== undefined) {
    event.preventDefault();
    document.getElementById(section)?.scrollIntoView();
    document.getElementById(section)?.querySelector("h2")?.setAttribute("tabindex", "-1");
    document.getElementById(section)?.querySelector("h2")?.focus({ preventScroll: true });
  }
}

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const { levels } = state.status;
  state.level =
    levels.find((level) => level.zoo === given.get("zoo") && level.service_level === given.get("level")) ??
    mostUsed(levels);
  const range = given.get("range");
  const isNew = (state.level?.overall.satisfaction.requests ?? 0) <= FEW_REQUESTS;
  state.range = RANGES.some(([id]) => id === range) ? range : isNew ? "newest" : "30";
}

function mostUsed(levels) {
  const used = (level) => level.overall.satisfaction.requests || (level.as_before?.requests ?? 0);
  return levels.reduce((most, level) => (most === null || used(level) > used(most) ? level : most), null);
}

function writeAddress() {
  const { zoo, service_level: level } = state.level;
  history.replaceState(null, "", `#${new URLSearchParams({ zoo, level, range: state.range })}`);
}

function trouble(error) {
  if (error instanceof SignInNeeded) {
    showDoor("Your session has ended.");
    return;
  }
  troubleLine.textContent = `Not everything could be read: ${error.message}.`;
  troubleLine.hidden = false;
}
