/**
 * One message on the page: what was said, its figures, and what can be done with it.
 *
 * `actions` has `edit(text)`, `regenerate()` and `more()`; they are called for this message.
 */

import { cutOff, figureLines } from "./answer.js";
import { copyButton } from "./copy.js";
import { h } from "./dom.js";
import { Prose } from "./prose.js";

export class PersonMessage {
  constructor(message, actions) {
    this.message = message;
    this.actions = actions;
    this.text = h("div", { class: "said", dir: "auto" }, message.content);
    this.edit = button("Edit", () => this.open());
    this.foot = h("div", { class: "foot" }, this.edit, copyButton(() => message.content, "Copy message"));
    this.element = h("article", { class: "person", "aria-label": "You" }, this.text, this.foot);
  }

  /** A field in place of the text; what it holds is sent, and what came after is replaced. */
  open() {
    const field = h("textarea", { "aria-label": "Edit message", rows: Math.min(12, this.message.content.split("\n").length + 1) });
    field.value = this.message.content;
    const close = () => {
      form.replaceWith(this.text);
      this.foot.hidden = false;
      this.edit.focus();
    };
    const form = h("form", { class: "edit" }, field, h("div", { class: "buttons" },
      button("Cancel", close), h("button", { class: "main small" }, "Send")));
    const send = (event) => {
      event.preventDefault();
      if (field.value.trim()) this.actions.edit(field.value);
    };
    form.addEventListener("submit", send);
    form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.target === field) send(event);
      if (event.key === "Escape") {
        event.stopPropagation();
        close();
      }
    });
    this.text.replaceWith(form);
    this.foot.hidden = true;
    field.focus();
  }

  update() {}
}

export class AnswerMessage {
  constructor(message, actions) {
    this.message = message;
    this.prose = new Prose();
    this.thinking = h("div", { class: "thinking-text", dir: "auto" });
    this.summary = h("summary", {}, "Thinking");
    this.fold = h("details", { class: "thinking", hidden: true }, this.summary, this.thinking);
    // Closed by itself when the answer begins, unless the person has touched it.
    this.summary.addEventListener("click", () => (this.touched = true));
    this.waiting = h("p", { class: "waiting" }, "Waiting for the model");
    this.notice = h("p", { class: "notice" });
    this.figures = h("span", { class: "figures" });
    // Both change what comes after them: they are shown on the last message alone.
    this.more = button("Go on", actions.more, "of-last");
    this.retry = button("Regenerate", actions.regenerate, "of-last");
    this.foot = h("div", { class: "foot" },
      copyButton(() => message.content, "Copy answer"), this.retry, this.more, this.figures);
    this.element = h("article", { class: "answer", "aria-label": `Answer of ${message.model}` },
      this.fold, this.prose.element, this.waiting, this.notice, this.foot);
    this.update();
  }

  update() {
    const { content, reasoning, state, notice, finish, progress, figures } = this.message;
    const streams = state === "streaming";
    this.element.setAttribute("aria-busy", streams);
    this.element.classList.toggle("streams", streams);
    this.prose.update(content);
    this.waiting.hidden = !streams || content !== "" || reasoning !== "";
    if (progress !== null && progress < 1) this.waits(`Reading the prompt: ${Math.round(progress * 100)} %`);
    this.showThinking(reasoning, streams && !content);
    const said = notice || cutOff(this.message);
    this.notice.textContent = said;
    this.notice.hidden = !said;
    this.foot.hidden = streams;
    this.retry.textContent = state === "failed" ? "Try again" : "Regenerate";
    this.more.hidden = !content || (state === "done" && finish !== "length");
    this.showFigures(figures);
  }

  /** Says what an answer that has no words yet waits for. */
  waits(text) {
    this.waiting.textContent = text;
  }

  showThinking(reasoning, now) {
    this.fold.hidden = !reasoning;
    if (!reasoning) return;
    if (this.thinking.textContent !== reasoning) this.thinking.textContent = reasoning;
    if (!this.touched) this.fold.open = now;
    this.summary.textContent = now ? "Thinking…" : "Thoughts";
  }

  showFigures(figures) {
    if (!figures?.completion) return;
    const { short, each } = figureLines(figures);
    this.figures.textContent = short;
    this.figures.title = each.join("\n");
  }
}

function button(text, press, more = "") {
  return h("button", { type: "button", class: `quiet small ${more}`, onclick: press }, text);
}
