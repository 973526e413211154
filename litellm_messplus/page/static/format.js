// Numbers, times and names as people read them. Null is "unknown", never zero.

const LOCALE = "en";
const UNKNOWN = "unknown";
const whole = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat(LOCALE, { notation: "compact", maximumFractionDigits: 1 });
const exact = new Intl.NumberFormat(LOCALE, { maximumSignificantDigits: 3 });

export const isKnown = (value) => value !== null && value !== undefined;

export function percent(share, digits = 1) {
  return isKnown(share) ? `${(100 * share).toFixed(digits)} %` : UNKNOWN;
}

export function interval(low, high) {
  return isKnown(low) ? `${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)} %` : "no verdicts yet";
}

export function count(value) {
  return isKnown(value) ? whole.format(value) : UNKNOWN;
}

export function compact(value) {
  return isKnown(value) ? short.format(value) : UNKNOWN;
}

/** Traffic, given in requests an hour. */
export function rate(hourly, isShort = false) {
  const of = isShort ? "" : " requests";
  return hourly >= 120 ? `${number(hourly / 60)}${of} a minute` : `${number(hourly)}${of} an hour`;
}

export function seconds(value) {
  return value !== 0 && value < 1 ? `${number(1000 * value)} ms` : `${number(value)} s`;
}

/** A length of time, given in seconds, that is a whole number of its unit. */
export function span(value) {
  const [name, size] = [["day", 86_400], ["hour", 3600], ["minute", 60], ["second", 1]].find(([, each]) => value % each === 0);
  return plural(value / size, name);
}

/** A queue, in requests: sums of shares leave a last digit behind that means nothing. */
export function owed(value) {
  return number(isKnown(value) ? Math.round(100 * value) / 100 + 0 : value);
}

export function number(value) {
  return isKnown(value) ? exact.format(value).replace("-", "−") : UNKNOWN;
}

/** A cost in the zoo's unit. */
export function cost(value, unit) {
  if (!isKnown(value)) {
    return UNKNOWN;
  }
  const size = Math.abs(value) < 1e-12 ? 0 : Math.abs(value); // sums leave a last digit behind
  const sign = value < 0 && size ? "−" : "";
  if (unit === "joule") {
    return sign + (size >= 1000 ? `${exact.format(size / 1000)} kJ` : `${exact.format(size)} J`);
  }
  const written = size >= 100 ? whole.format(size) : size > 0 && size < 1e-6 ? size.toExponential(1) : exact.format(size);
  return unit === "usd" ? `${sign}$${written}` : `${sign}${written}`;
}

export function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

const TIME = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: "UTC" };
const SECONDS = { ...TIME, second: "2-digit" };
const DAY = { day: "numeric", month: "short", timeZone: "UTC" };
const formats = {
  time: new Intl.DateTimeFormat("en-GB", TIME),
  day: new Intl.DateTimeFormat("en-GB", DAY),
  clock: new Intl.DateTimeFormat("en-GB", SECONDS),
  seconds: new Intl.DateTimeFormat("en-GB", { ...DAY, ...SECONDS }),
  both: new Intl.DateTimeFormat("en-GB", { ...DAY, ...TIME }),
  full: new Intl.DateTimeFormat("en-GB", { ...DAY, year: "numeric", ...SECONDS }),
};

/** A moment, as one of the formats. */
export function moment(text, kind = "both") {
  return formats[kind].format(new Date(text));
}

/** The sender: the alias of a key, else the beginning of its hash. */
export function keyName({ key_alias: alias, key_hash: hash }) {
  const known = { litellm_proxy_master_key: "master key" };
  return alias ?? known[hash] ?? (/^[0-9a-f]{13,}$/.test(hash) ? shortId(hash) : hash ?? "none");
}

/** The beginning of an id that no one reads to its end. */
export function shortId(id) {
  return id.length > 12 ? `${id.slice(0, 8)}…` : id;
}

/** A candidate; what has no known candidate has no name. */
export function candidateName(name) {
  return name || "no model of the zoo";
}

/** The end of a model's long name, which is what tells it from the others. */
export function modelName(name) {
  const end = candidateName(name).split("/").at(-1);
  return end || name;
}

export function promiseName(level) {
  return level.service_level === "default" ? level.zoo : `${level.zoo}, ${level.service_level}`;
}
