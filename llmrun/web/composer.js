/** The field for a new message: Enter sends, Shift+Enter makes a line, Escape stops the answer. */

import { byId } from "./dom.js";

export class Composer {
  /** `send(text)`, whether it could be sent; `stop()`; `editLast()` for the arrow up in an empty field. */
  constructor({ send, stop, editLast }) {
    this.field = byId("prompt");
    this.sendButton = byId("send");
    this.stopButton = byId("stop");
    this.send = send;
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.stopButton.addEventListener("click", stop);
    this.field.addEventListener("input", () => this.fit());
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.submit();
      }
      if (event.key === "ArrowUp" && !this.field.value) {
        event.preventDefault();
        editLast();
      }
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !document.querySelector("dialog[open]")) stop();
    });
  }

  async submit() {
    const text = this.field.value;
    if (!text.trim() || this.answering) return;
    this.field.value = "";
    this.fit();
    if ((await this.send(text)) || this.field.value) return;
    this.field.value = text;
    this.fit();
  }

  /** As high as its text, up to what the style allows. */
  fit() {
    this.field.style.height = "auto";
    this.field.style.height = `${this.field.scrollHeight}px`;
  }

  /** While an answer is being written there is something to stop and nothing to send. */
  set busy(answering) {
    const held = document.activeElement === this.stopButton;
    this.answering = answering;
    this.stopButton.hidden = !answering;
    this.sendButton.hidden = answering;
    if (held && !answering) this.field.focus();
  }

  focus() {
    this.field.focus();
  }
}
