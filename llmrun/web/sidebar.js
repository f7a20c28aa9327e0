/** The list of conversations: open, rename, export, delete. */

import { ask, byId, h } from "./dom.js";

export class Sidebar {
  /** `chat` and `store` as elsewhere; `opened(id)` when the person picks one, `removed(id)` when it is gone. */
  constructor(chat, store, { opened, removed }) {
    this.chat = chat;
    this.store = store;
    this.opened = opened;
    this.removed = removed;
    this.list = byId("conversations");
  }

  async draw() {
    if (this.list.querySelector("input")) return; // a name is being written
    const held = document.activeElement?.closest?.("#conversations [data-id]")?.dataset.id;
    const all = await this.store.all();
    this.list.replaceChildren(...all.map((conversation) => this.row(conversation)));
    if (held) this.list.querySelector(`[data-id="${CSS.escape(held)}"] button`)?.focus();
  }

  row(conversation) {
    const { id, title } = conversation;
    const current = id === this.chat.current.id;
    const name = h("button", { type: "button", class: "name", "aria-current": current ? "true" : null, dir: "auto",
      onclick: () => this.opened(id) }, title);
    const tool = (label, text, press) =>
      h("button", { type: "button", class: "quiet small", "aria-label": `${label} “${title}”`, title: label, onclick: press }, text);
    const tools = h("span", { class: "tools" },
      tool("Rename", "✎", () => this.rename(name, conversation)),
      tool("Export", "⤓", () => save(conversation)),
      tool("Delete", "✕", () => this.remove(conversation)));
    return h("li", { "data-id": id, class: current ? "current" : null }, name, tools);
  }

  rename(name, conversation) {
    const field = h("input", { "aria-label": "Name of the conversation", maxlength: "120" });
    field.value = conversation.title;
    let over = false; // a field that goes loses the focus, which is told before it is gone
    const done = async (keep, byKey = false) => {
      if (over) return;
      over = true;
      const title = field.value.trim();
      field.replaceWith(name);
      if (byKey) name.focus();
      if (keep && title) {
        // The one that is open, or being answered, is an object of its own.
        const live = this.chat.current.id === conversation.id ? this.chat.current : conversation;
        Object.assign(this.chat.running.get(live.id)?.conversation ?? live, { title, named: true });
        await this.chat.save(this.chat.running.get(live.id)?.conversation ?? live);
      }
      await this.draw();
    };
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") done(true, true);
      if (event.key === "Escape") done(false, true);
      event.stopPropagation();
    });
    field.addEventListener("blur", () => done(true));
    name.replaceWith(field);
    field.select();
  }

  async remove({ id, title }) {
    byId("confirm-title").textContent = `Delete “${title}”?`;
    if (!(await ask(byId("confirm")))) return;
    await this.chat.remove(id);
    this.removed(id);
  }
}

/** Gives a conversation to the person as a JSON file. */
function save(conversation) {
  const text = JSON.stringify(conversation, null, 2);
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const name = conversation.title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "chat";
  h("a", { href: address, download: `${name}.json` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
