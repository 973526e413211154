// The page: requests the data, keeps what is chosen in the address, and shows one of three screens.

import { alarms } from "./alarms.js";
import { SignInNeeded, overview, signOut } from "./api.js";
import { el, replace } from "./dom.js";
import { explanationDialog } from "./explanation.js";
import { isKnown, isUsed, percent, promiseName } from "./format.js";
import { detailsScreen } from "./screen_details.js";
import { promiseScreen, verdictChip } from "./screen_promise.js";
import { requestsScreen } from "./screen_requests.js";
import { showSignIn, useCode } from "./sign_in.js";

const REFRESH_SECONDS = 30;
const RANGES = [["newest", "Newest", null], ["1", "24 h", 1], ["7", "7 days", 7], ["30", "30 days", 30], ["90", "90 days", 90], ["365", "Year", 365]];
const FEW_REQUESTS = 2000;

const content = document.getElementById("content");
const troubleLine = document.getElementById("trouble");
const nav = document.getElementById("screens");
const ranges = document.getElementById("ranges");
const state = { status: null, level: null, range: null, screen: "promise", shown: 0 };
const explanation = explanationDialog(trouble);
const screens = {
  promise: promiseScreen(),
  requests: requestsScreen({ explain: (id) => explanation.open(id, state.level.cost_unit) }),
  details: detailsScreen({ trouble }),
};
const slots = { alarms: el("div", {}), promises: el("div", {}) };

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
  nav.addEventListener("click", chooseScreen);
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
  await arrange();
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
  for (const part of [nav, ranges, document.getElementById("sign-out")]) {
    part.hidden = !isIn;
  }
}

/** Put the chosen screen in its place, and show it. */
async function arrange() {
  setSignedIn(state.level !== null);
  document.getElementById("sign-out").hidden = false;
  for (const link of nav.querySelectorAll("a")) {
    link.setAttribute("aria-current", link.dataset.screen === state.screen ? "page" : "false");
  }
  ranges.hidden = state.level === null || !isUsed(state.level) || state.screen === "requests";
  replace(ranges, el("legend", { class: "unseen" }, "Range"), ...RANGES.map(([id, words]) => segment(id, words)));
  const screen = state.level === null ? el("p", { class: "card empty" }, "No zoo is configured.") : screens[state.screen].node;
  replace(content, slots.alarms, slots.promises, screen, explanation.dialog);
  content.removeAttribute("aria-busy");
  await show();
}

async function show() {
  replace(slots.alarms, alarms(state.status, state.level));
  showPromises();
  if (state.level === null) {
    return;
  }
  state.shown += 1;
  const { shown } = state;
  try {
    await screens[state.screen].show({ ...state.level, changes: state.status.model_changes }, RANGES.find(([id]) => id === state.range)[2]);
    if (shown === state.shown) {
      troubleLine.hidden = true;
      content.dataset.shown = state.screen;
    }
  } catch (error) {
    trouble(error);
  }
}

/** Every promise as it stands, where there are several: a card is a radio button. */
function showPromises() {
  const { levels } = state.status;
  const hadFocus = document.activeElement?.name === "promise";
  const cards = levels.map((level, place) => promiseCard(level, place));
  replace(slots.promises, levels.length > 1 ? el("fieldset", { class: "promises" }, el("legend", { class: "unseen" }, "Promise"), ...cards) : null);
  if (hadFocus) {
    slots.promises.querySelector("input:checked")?.focus();
  }
}

function promiseCard(level, place) {
  const { satisfaction } = level.overall;
  const isRouted = satisfaction.requests > 0;
  const rate = isRouted ? satisfaction.rate : level.as_before?.rate;
  return el(
    "div",
    { class: "promise" },
    el("input", { type: "radio", name: "promise", id: `promise-${place}`, checked: level === state.level, on: { change: () => chooseLevel(level) } }),
    el("label", { for: `promise-${place}` }, el("span", { class: "promise-name" }, promiseName(level)), isKnown(rate) ? el("b", {}, percent(rate)) : null, isRouted ? verdictChip(satisfaction) : el("span", { class: "chip info" }, isUsed(level) ? "watched" : "no requests yet")),
  );
}

function segment(id, words) {
  return el(
    "span",
    { class: "segment" },
    el("input", { type: "radio", name: "range", id: `range-${id}`, checked: id === state.range, on: { change: () => chooseRange(id) } }),
    el("label", { for: `range-${id}` }, words),
  );
}

function chooseLevel(level) {
  state.level = level;
  writeAddress();
  arrange();
}

function chooseRange(range) {
  state.range = range;
  writeAddress();
  show();
}

function chooseScreen(event) {
  const { screen } = event.target.dataset;
  if (screen !== undefined) {
    event.preventDefault();
    state.screen = screen;
    writeAddress();
    arrange();
    window.scrollTo(0, 0);
  }
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
  await (state.level !== null && isUsed(state.level) === wasUsed ? show() : arrange());
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

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const { levels } = state.status;
  state.level =
    levels.find((level) => level.zoo === given.get("zoo") && level.service_level === given.get("level")) ??
    mostUsed(levels);
  const range = given.get("range");
  const isNew = (state.level?.overall.satisfaction.requests ?? 0) <= FEW_REQUESTS;
  state.range = RANGES.some(([id]) => id === range) ? range : isNew ? "newest" : "30";
  state.screen = given.get("screen") in screens ? given.get("screen") : "promise";
}

function mostUsed(levels) {
  const used = (level) => level.overall.satisfaction.requests || (level.as_before?.requests ?? 0);
  return levels.reduce((most, level) => (most === null || used(level) > used(most) ? level : most), null);
}

function writeAddress() {
  const { zoo, service_level: level } = state.level;
  history.replaceState(null, "", `#${new URLSearchParams({ screen: state.screen, zoo, level, range: state.range })}`);
}

function trouble(error) {
  if (error instanceof SignInNeeded) {
    showDoor("Your session has ended.");
    return;
  }
  troubleLine.textContent = `Not everything could be read: ${error.message}.`;
  troubleLine.hidden = false;
}
