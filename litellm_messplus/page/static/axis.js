// How the places along a chart are named, and at which round requests or times its ticks stand. A tick
// is {place, text}; a place is that of a point, or lies between two.

import { moment } from "./format.js";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const TIMES = [1, 5, 10, 30].map((each) => each * SECOND).concat([1, 5, 10, 30].map((each) => each * MINUTE), [1, 3, 6, 12].map((each) => each * HOUR), [1, 2, 7, 14, 28, 56, 91].map((each) => each * DAY));

/** Of points that each end with the request of that number. */
export function requestAxis(points) {
  return {
    size: points.length,
    name: "up to request",
    title: "number of the request",
    long: (place) => `request ${points[place].number}, ${moment(points[place].at)}`,
    ticks(most) {
      if (points.length < 2) {
        return points.map((point, place) => ({ place, text: `${point.number}` }));
      }
      const each = points[1].number - points[0].number;
      const [first, last] = [points[0].number - each + 1, points.at(-1).number];
      const size = roundCount((last - first) / most);
      return multiples(first, last, size).map((number) => ({ place: (number - points[0].number) / each, text: `${number}` }));
    },
  };
}

/** Of points that each begin at a time, so many seconds apart. */
export function timeAxis(points, seconds) {
  const step = seconds * SECOND;
  const begin = points.length ? Date.parse(points[0].at) : 0;
  const kind = step >= DAY ? "day" : step < MINUTE ? "seconds" : "both";
  return {
    size: points.length,
    name: "from",
    title: "UTC",
    long: (place) => moment(points[place].at, kind),
    ticks(most) {
      const whole = points.length * step;
      const size = Math.max(step, TIMES.find((each) => whole / each <= most) ?? Math.ceil(whole / most / DAY) * DAY);
      const short = size >= DAY ? "day" : size < MINUTE ? "clock" : whole > DAY ? "both" : "time";
      const edge = step >= DAY ? 0 : 0.5; // a bar of a day is named as a whole
      const from = step >= DAY ? begin : 0;
      return multiples(begin - from, begin - from + whole - 1, size).map((at) => ({ place: (at + from - begin) / step - edge, text: moment(at + from, short) }));
    },
  };
}

function roundCount(rough) {
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
}

function multiples(first, last, size) {
  const found = [];
  for (let at = Math.ceil(first / size) * size; at <= last; at += size) {
    found.push(at);
  }
  return found;
}
