/**
 * The colour theme: the system's, light or dark. A button goes through the three; the choice is kept.
 */

import { local } from "./kept.js";

const KEY = "llmrun.theme";
const NEXT = { "": "light", light: "dark", dark: "" };
const SAID = { "": "as the system", light: "light", dark: "dark" };

export function themeButton(button, say) {
  const root = document.documentElement;
  const label = () => {
    const text = `Colour theme: ${SAID[root.dataset.theme ?? ""]}`;
    button.setAttribute("aria-label", text);
    button.title = text;
    return text;
  };
  label();
  button.addEventListener("click", () => {
    const theme = NEXT[root.dataset.theme ?? ""];
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    local.set(KEY, theme);
    say(label());
  });
}
