// What is shown as CSV, made in the browser: a chart with its numbers, a table with its texts.

import { el, table } from "./dom.js";

/** A table as the server writes it: its cells are texts. */
export function shownTable({ title, columns, rows }) {
  const kinds = columns.map(({ name, kind }) => ({ name, number: kind === "figure", words: kind === "words" }));
  return el("div", { class: "with-csv" }, csvButton(title, () => [columns.map(({ name }) => name), ...rows]), table(title, kinds, rows));
}

/** A button that saves rows, the first of them the names; `rows` is asked when it is pressed. */
export function csvButton(title, rows) {
  const name = `${title.toLowerCase().replace(/[^a-z0-9]+/g, "-")}.csv`;
  return el("button", { type: "button", class: "link csv", "aria-label": `CSV: ${title}`, on: { click: () => save(name, rows()) } }, "CSV");
}

function save(name, rows) {
  const text = rows.map((row) => row.map(cell).join(",")).join("\r\n");
  const address = URL.createObjectURL(new Blob([`${text}\r\n`], { type: "text/csv" }));
  el("a", { href: address, download: name }).click();
  URL.revokeObjectURL(address);
}

/** A text that a spreadsheet would take for a formula begins with an apostrophe. */
function cell(value) {
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
