/**
 * Elements without markup: text only ever becomes text nodes, so what a model writes cannot become HTML.
 */

const SVG = "http://www.w3.org/2000/svg";

/** An element with properties (`class`, `on…` listeners, `data-…` and `aria-…` attributes) and children. */
export function h(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** The same in SVG's namespace. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const byId = (id) => document.getElementById(id);

/** Shows a `<dialog>` and waits: its form's data where it was saved, null where it was closed. */
export function ask(dialog) {
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener(
      "close",
      () => resolve(dialog.returnValue === "save" ? new FormData(dialog.querySelector("form")) : null),
      { once: true },
    );
  });
}
