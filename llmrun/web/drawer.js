/** The sidebar on narrow screens: a drawer over the messages, out of reach while it is closed. */

import { byId } from "./dom.js";

export class Drawer {
  constructor() {
    this.sidebar = byId("sidebar");
    this.veil = byId("veil");
    this.behind = document.querySelector("main");
    this.button = byId("menu");
    this.narrow = matchMedia("(max-width: 760px)");
    this.button.addEventListener("click", () => this.set(true));
    this.veil.addEventListener("click", () => this.set(false));
    this.narrow.addEventListener("change", () => this.set(false));
    this.sidebar.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.sidebar.classList.contains("open")) return;
      event.stopPropagation(); // it would stop the answer too
      this.set(false);
    });
    this.set(false);
  }

  /** Opens or closes it; on wide screens the sidebar is always there. */
  set(open) {
    const drawn = this.narrow.matches && open;
    const held = this.sidebar.contains(document.activeElement);
    this.sidebar.classList.toggle("open", drawn);
    this.sidebar.inert = this.narrow.matches && !open;
    this.behind.inert = drawn;
    this.veil.hidden = !drawn;
    this.button.setAttribute("aria-expanded", drawn);
    if (drawn) this.sidebar.querySelector("button").focus();
    else if (held && this.narrow.matches) this.button.focus();
  }
}
