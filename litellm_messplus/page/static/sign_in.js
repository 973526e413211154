// Signing in: by the code of a link that `messplus status --ui` printed, or by an administrator's key.

import { redeem, signInByKey } from "./api.js";
import { el, replace } from "./dom.js";

/** Use the code in the address, if there is one, and take it out of the address and the history. */
export async function useCode() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code === null) {
    return;
  }
  history.replaceState(null, "", location.pathname);
  await redeem(code);
}

/** Show how to sign in; `done` is called when it worked. */
export function showSignIn(content, message, done) {
  const trouble = el("p", { class: "field-trouble", role: "alert", id: "key-trouble" });
  const key = el("input", { id: "key", type: "password", autocomplete: "off", spellcheck: "false", required: true, "aria-describedby": "key-trouble" });
  const form = el(
    "form",
    { on: { submit: (event) => submit(event, key, trouble, done) } },
    el("label", { for: "key" }, "Key of an administrator of the proxy"),
    el("div", { class: "row" }, key, el("button", { type: "submit", class: "primary" }, "Sign in")),
    trouble,
  );
  replace(
    content,
    el(
      "section",
      { class: "card sign-in", "aria-labelledby": "sign-in-title" },
      el("h2", { id: "sign-in-title" }, "Sign in"),
      message ? el("p", { class: "note" }, message) : null,
      el("p", {}, "On the machine of the proxy, run this and open the link that it prints:"),
      el("pre", { tabindex: "0", role: "group", "aria-label": "Command" }, el("code", {}, "messplus status --ui")),
      el("p", {}, "If you are signed in to LiteLLM's dashboard on this address, you are signed in here."),
      form,
    ),
  );
}

async function submit(event, key, trouble, done) {
  event.preventDefault();
  trouble.textContent = "";
  try {
    await signInByKey(key.value.trim());
  } catch (error) {
    trouble.textContent = `Not signed in: ${error.message}.`;
    key.setAttribute("aria-invalid", "true");
    key.focus();
    return;
  }
  done();
}
