// Drawing one chart into an SVG: stacked bars, bands, lines, on two axes. No state, no events.

import { svg } from "./dom.js";

const MARGIN = { top: 26, right: 10, bottom: 42 };
export const HEIGHT = 250;
const TICK_WIDTH = 84;
const LETTER_WIDTH = 6.8;

/**
 * Draw a model of `width` pixels, and return where its points are.
 *
 * The model has `size` points and any of: `bars` [{name, colour, values}] that stack, `bands`
 * [{colour, low, high}], `lines` [{name, colour, values, dashed}]; and `domain` [least, most],
 * `format` for values, `unit` for what they are, `ticks` for the places of so many round ticks, and
 * `title` for what these are. Null values are gaps.
 */
export function draw(drawing, model, width) {
  const left = 14 + LETTER_WIDTH * Math.max(5, ...ticks(model.domain).map((value) => model.format(value).length));
  const inner = { left, width: Math.max(60, width - left - MARGIN.right), height: HEIGHT - MARGIN.top - MARGIN.bottom };
  const step = inner.width / Math.max(1, model.size);
  const x = (place) => left + (place + 0.5) * step;
  const [least, most] = model.domain;
  const y = (value) => MARGIN.top + inner.height * (1 - (value - least) / (most - least || 1));
  drawing.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  drawing.setAttribute("width", width);
  drawing.setAttribute("height", HEIGHT);
  drawing.replaceChildren(
    ...grid(model, inner, y),
    ...labels(model, inner, x),
    ...stacks(model.bars ?? [], model.size, x, y, step),
    ...(model.bands ?? []).flatMap((band) => bandPaths(band, x, y)),
    ...(model.lines ?? []).flatMap((line) => linePaths(line, x, y)),
    svg("line", { class: "cursor", y1: MARGIN.top, y2: MARGIN.top + inner.height, visibility: "hidden" }),
  );
  return { x, step, left };
}

/** Round numbers between which all values lie, the axis of a chart. */
export function niceDomain(values, { zero = true, whole = false, most = Infinity } = {}) {
  const known = values.filter((value) => value !== null && Number.isFinite(value));
  let low = Math.min(...known, ...(zero ? [0] : []));
  let high = Math.max(...known, ...(zero ? [0] : []));
  if (known.length === 0) {
    return [0, 1];
  }
  if (low === high) {
    high = low + (Math.abs(low) || 1);
  }
  if (whole) {
    high = Math.max(high, 4); // a tick at every half would repeat its number
  }
  const size = stepSize(low, high);
  low = Math.floor(low / size + 1e-9) * size;
  high = Math.min(most, Math.ceil(high / size - 1e-9) * size);
  return [low, high];
}

function stepSize(low, high) {
  const rough = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
}

function ticks([low, high]) {
  const size = stepSize(low, high);
  const first = Math.ceil(low / size - 1e-9) * size;
  const found = [];
  for (let place = 0; place < 12 && first + place * size <= high + size * 1e-6; place += 1) {
    found.push(first + place * size);
  }
  return found;
}

function grid(model, inner, y) {
  return ticks(model.domain).flatMap((value) => [
    svg("line", {
      class: Math.abs(value) < 1e-12 ? "axis" : "grid",
      x1: inner.left,
      x2: inner.left + inner.width,
      y1: y(value),
      y2: y(value),
    }),
    svg("text", { class: "tick", x: inner.left - 8, y: y(value) + 4, "text-anchor": "end" }, model.format(value)),
  ]);
}

function labels(model, inner, x) {
  const most = Math.max(2, Math.floor(inner.width / TICK_WIDTH));
  const right = inner.left + inner.width;
  const found = model.ticks(most).map(({ place, text }) => {
    const half = (text.length * LETTER_WIDTH) / 2;
    const at = Math.min(right + MARGIN.right - half, x(place));
    return svg("text", { class: "tick", x: at, y: HEIGHT - 24, "text-anchor": "middle" }, text);
  });
  return [
    ...found,
    svg("text", { class: "tick", x: right, y: HEIGHT - 6, "text-anchor": "end" }, model.title),
    svg("text", { class: "tick", x: 2, y: 12 }, model.unit),
  ];
}

function stacks(bars, size, x, y, step) {
  const found = [];
  const width = Math.max(1, Math.min(step * 0.8, 36));
  for (let place = 0; place < size; place += 1) {
    let below = 0;
    for (const bar of bars) {
      const value = bar.values[place];
      if (!value) {
        continue;
      }
      const top = y(below + value);
      found.push(
        svg("rect", {
          class: `fill-${bar.colour}`,
          x: x(place) - width / 2,
          y: top,
          width,
          height: Math.max(0.5, y(below) - top - (step > 8 ? 1 : 0)),
        }),
      );
      below += value;
    }
  }
  return found;
}

function bandPaths(band, x, y) {
  return runs(band.low).map((places) => {
    const edge = places.length === 1 ? [places[0] - 0.2, places[0] + 0.2] : places;
    const at = (value, place) => `${x(place).toFixed(1)},${y(value).toFixed(1)}`;
    const value = (values, place) => values[Math.round(place)];
    const upper = edge.map((place) => at(value(band.high, place), place));
    const lower = edge.map((place) => at(value(band.low, place), place)).reverse();
    return svg("path", { class: `band fill-${band.colour}`, d: `M${[...upper, ...lower].join("L")}Z` });
  });
}

function linePaths(line, x, y) {
  return runs(line.values).map((places) => {
    if (places.length === 1) {
      const [place] = places;
      return svg("circle", { class: `fill-${line.colour}`, cx: x(place), cy: y(line.values[place]), r: 3 });
    }
    const points = places.map((place) => `${x(place).toFixed(1)},${y(line.values[place]).toFixed(1)}`);
    const kind = `line stroke-${line.colour}${line.dashed ? " dashed" : ""}`;
    return svg("path", { class: kind, d: `M${points.join("L")}` });
  });
}

/** The places of values that are known, in runs without a gap. */
function runs(values) {
  const found = [];
  let run = [];
  values.forEach((value, place) => {
    if (value === null || value === undefined) {
      run = [];
      return;
    }
    if (run.length === 0) {
      found.push(run);
    }
    run.push(place);
  });
  return found;
}
