// A chart as a figure: a heading with its figure, a legend, the drawing, what the pointer or the arrow
// keys are on, and the same data as a table.

import { el, replace, svg, table } from "./dom.js";
import { HEIGHT, draw } from "./plot.js";

let made = 0;

/** A card that holds a chart; `update(model)` shows other data in it. */
export function chartCard(title) {
  made += 1;
  const id = `chart-${made}`;
  const parts = {
    figure: el("p", { class: "chart-figure" }),
    legend: el("ul", { class: "legend" }),
    drawing: svg("svg", { "aria-hidden": "true", focusable: "false", height: HEIGHT }),
    tip: el("div", { class: "tip", "aria-hidden": "true", hidden: true }),
    live: el("p", { class: "unseen", "aria-live": "polite" }),
    note: el("p", { class: "note" }),
    data: el("div", {}),
  };
  const plot = el(
    "div",
    {
      class: "plot",
      tabindex: "0",
      role: "group",
      "aria-label": `Chart: ${title}. The arrow keys move through its points; the data is below as a table.`,
    },
    parts.drawing,
    parts.tip,
  );
  const details = el("details", {}, el("summary", {}, "Data as a table"), parts.data);
  const card = el(
    "section",
    { class: "card chart", "aria-labelledby": id },
    el("div", { class: "chart-head" }, el("h3", { id }, title), parts.figure),
    parts.note,
    parts.legend,
    plot,
    parts.live,
    details,
  );
  const state = { model: null, placed: null, at: null, plot, details, card, ...parts };
  plot.addEventListener("pointermove", (event) => point(state, event));
  plot.addEventListener("pointerleave", () => move(state, null, false));
  plot.addEventListener("blur", () => move(state, null, false));
  plot.addEventListener("keydown", (event) => step(state, event));
  details.addEventListener("toggle", () => fillTable(state, title));
  new ResizeObserver(() => redraw(state)).observe(plot);
  return { card, update: (model) => update(state, model, title) };
}

function update(state, model, title) {
  state.model = model;
  state.at = null;
  state.card.hidden = model.size === 0 || model.isEmpty;
  state.note.textContent = model.note;
  for (const part of [state.plot, state.legend, state.details]) {
    part.hidden = model.isPlain ?? false;
  }
  replace(state.figure, model.figure ?? []);
  replace(
    state.legend,
    model.legend.map((entry) =>
      el("li", {}, el("span", { class: `swatch ${entry.kind ?? "box"} mark-${entry.colour}`, "aria-hidden": "true" }), entry.name),
    ),
  );
  redraw(state);
  fillTable(state, title);
}

function redraw(state) {
  if (state.model === null || state.card.hidden || state.plot.hidden) {
    return;
  }
  const width = Math.floor(state.plot.clientWidth);
  if (width > 0) {
    state.placed = draw(state.drawing, state.model, width);
    move(state, state.at, false);
  }
}

function fillTable(state, title) {
  if (state.details.open && state.model !== null) {
    const { columns, rows } = state.model.table;
    replace(state.data, table(title, columns, rows, { unseenCaption: true }));
  }
}

function point(state, event) {
  if (state.placed === null) {
    return;
  }
  const across = event.clientX - state.plot.getBoundingClientRect().left - state.placed.left;
  const place = Math.floor(across / state.placed.step);
  move(state, Math.min(state.model.size - 1, Math.max(0, place)), false);
}

function step(state, event) {
  const last = (state.model?.size ?? 0) - 1;
  const at = state.at ?? (event.key === "ArrowLeft" ? last + 1 : -1);
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last, Escape: null }[event.key];
  if (to === undefined || last < 0) {
    return;
  }
  event.preventDefault();
  move(state, to === null ? null : Math.min(last, Math.max(0, to)), true);
}

function move(state, place, isAnnounced) {
  state.at = place;
  const cursor = state.drawing.querySelector(".cursor");
  state.tip.hidden = place === null;
  cursor?.setAttribute("visibility", place === null ? "hidden" : "visible");
  if (place === null || state.placed === null) {
    return;
  }
  const x = state.placed.x(place);
  cursor?.setAttribute("x1", x);
  cursor?.setAttribute("x2", x);
  const { title, lines } = state.model.read(place);
  replace(
    state.tip,
    el("p", { class: "tip-title" }, title),
    lines.map(([name, value, colour]) =>
      el("p", {}, el("span", { class: `swatch box mark-${colour}` }), el("span", {}, name), el("b", {}, value)),
    ),
  );
  const room = state.plot.clientWidth - state.tip.offsetWidth - 8;
  state.tip.style.left = `${Math.max(0, Math.min(room, x + 14 > room ? x - state.tip.offsetWidth - 14 : x + 14))}px`;
  if (isAnnounced) {
    state.live.textContent = `${title}: ${lines.map(([name, value]) => `${name} ${value}`).join(", ")}`;
  }
}
