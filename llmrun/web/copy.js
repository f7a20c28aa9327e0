/** A button that copies text, and says that it did. */

import { h } from "./dom.js";

/** `text()` is asked when the button is pressed. */
export function copyButton(text, label = "Copy") {
  const button = h("button", { type: "button", class: "quiet small", "aria-label": label }, "Copy");
  button.addEventListener("click", async () => {
    button.textContent = (await copied(text())) ? "Copied" : "Not allowed";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  return button;
}

async function copied(text) {
  // Browsers give the clipboard to secure pages only, and http://192.168.1.2 is none.
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  const field = h("textarea", { class: "unseen", readonly: true });
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}
