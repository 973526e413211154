// Making elements. Words of users, clients and models become text nodes, and never markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element with properties, and children that are nodes or text; null children are left out. */
export function el(name, properties = {}, ...children) {
  return filled(document.createElement(name), properties, children);
}

/** The same for a drawing. */
export function svg(name, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, name), properties, children);
}

/** Put these children in the place of those that an element has. */
export function replace(parent, ...children) {
  parent.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
  return parent;
}

/** A table with a caption. `columns` are {name, number, words}; `rows` hold nodes or text. */
export function table(caption, columns, rows, { unseenCaption = false } = {}) {
  const kind = (column) => ["number", "words"].filter((name) => column[name]).join(" ");
  const head = columns.map((column) => el(column.name ? "th" : "td", { scope: column.name ? "col" : null, class: kind(column) }, column.name));
  const body = rows.map((row) =>
    el(
      "tr",
      {},
      ...row.map((cell, place) =>
        place === 0
          ? el("th", { scope: "row", class: kind(columns[place]) }, cell)
          : el("td", { class: kind(columns[place]) }, cell),
      ),
    ),
  );
  return el(
    "div",
    { class: "scroll", role: "region", "aria-label": `${caption}: table`, tabindex: "0" },
    el(
      "table",
      {},
      el("caption", { class: unseenCaption ? "unseen" : "" }, caption),
      el("thead", {}, el("tr", {}, ...head)),
      el("tbody", {}, ...body),
    ),
  );
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false || (name === "class" && value === "")) {
      continue;
    }
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) {
        element.addEventListener(event, listener);
      }
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}
