// Asking the proxy. Addresses are relative, so the page works behind any prefix; the browser sends
// the session, which no script can read.

/** Nobody is signed in, or not as an administrator. */
export class SignInNeeded extends Error {}

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new Error("the proxy does not answer");
  }
  if (answer.status === 401 || answer.status === 403) {
    throw new SignInNeeded(await reason(answer));
  }
  if (!answer.ok) {
    throw new Error(await reason(answer));
  }
  return answer.status === 204 ? null : answer.json();
}

async function reason(answer) {
  const body = await answer.json().catch(() => null);
  const detail = body?.detail ?? body?.error?.message;
  if (Array.isArray(detail)) {
    return detail.map(({ loc, msg }) => `${loc?.at(-1)}: ${msg}`).join("; "); // fields that are refused
  }
  return typeof detail === "string" ? detail : `the proxy answered ${answer.status}`;
}

function query(values) {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== "" && value !== undefined);
  return new URLSearchParams(given).toString();
}

export const overview = () => ask("data/overview");
export const certificate = (zoo) => ask(`data/certificate?${query({ zoo })}`);
const ofPromise = ({ zoo, service_level: level }, days) => query({ zoo, service_level: level, days });
export const series = (level, days) => ask(`data/series?${ofPromise(level, days)}`);
export const details = (level, days) => ask(`data/details?${ofPromise(level, days)}`);
export const requests = (wanted) => ask(`data/requests?${query(wanted)}`);
export const request = (id) => ask(`data/requests/${encodeURIComponent(id)}`);

const zooPath = (name) => `data/zoos/${name.split("/").map(encodeURIComponent).join("/")}`;
export const zoo = (name) => ask(zooPath(name));

/** Change the mode of a zoo; the answer is the zoo as it is then. */
export function changeZoo(name, wanted) {
  const body = JSON.stringify(wanted);
  return ask(zooPath(name), { method: "PATCH", headers: { "content-type": "application/json" }, body });
}

export function redeem(code) {
  const body = JSON.stringify({ code });
  return ask("session", { method: "POST", headers: { "content-type": "application/json" }, body });
}

export function signInByKey(key) {
  return ask("session/key", { method: "POST", headers: { authorization: `Bearer ${key}` } });
}

export const signOut = () => ask("session", { method: "DELETE" });
