// Numbers, times and names as people read them. Null is "unknown", never zero.

const LOCALE = "en";
const UNKNOWN = "unknown";
const whole = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 0 });
const exact = new Intl.NumberFormat(LOCALE, { maximumSignificantDigits: 4 });

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

const TIME = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: "UTC" };
const SECONDS = { ...TIME, second: "2-digit" };
const DAY = { day: "numeric", month: "short", timeZone: "UTC" };
const formats = {
  day: new Intl.DateTimeFormat("en-GB", DAY),
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

/** Whether a promise has anything to show. */
export function isUsed(level) {
  return level.overall.satisfaction.requests > 0 || isKnown(level.as_before);
}

export function promiseName(level) {
  return level.service_level === "default" ? level.zoo : `${level.zoo}, ${level.service_level}`;
}
