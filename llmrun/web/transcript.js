/**
 * The messages of one conversation, drawn at most once a frame. It follows the end of an answer while the
 * person is there, and stays where they scroll to.
 */

import { h } from "./dom.js";
import { AnswerMessage, PersonMessage } from "./message.js";

const NEAR = 40; // pixels from the end that count as being there

export class Transcript {
  /** `actions(index)` gives a message's actions; `empty()` an element for a conversation without messages. */
  constructor(element, actions, empty) {
    this.element = element;
    this.actions = actions;
    this.empty = empty;
    this.views = [];
    this.follows = true;
    element.addEventListener("scroll", () => {
      this.follows = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
    });
  }

  /** Shows these messages; those that are shown already keep their elements. */
  show(messages) {
    let same = 0;
    while (same < messages.length && this.views[same]?.message === messages[same]) same += 1;
    this.views.splice(same);
    for (let at = same; at < messages.length; at += 1) {
      const View = messages[at].role === "user" ? PersonMessage : AnswerMessage;
      this.views.push(new View(messages[at], this.actions(at)));
    }
    const elements = this.views.map((view) => view.element);
    if (!elements.length) {
      this.element.replaceChildren(this.empty());
      return;
    }
    while (this.element.children.length > same) this.element.lastChild.remove();
    if (same === 0) this.element.replaceChildren();
    this.element.append(...elements.slice(same));
    this.toEnd();
  }

  /** Draws a message anew with the next frame. */
  touch(message) {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.views.find((view) => view.message === message)?.update();
      if (this.follows) this.scrollToEnd();
    });
  }

  toEnd() {
    this.follows = true;
    this.scrollToEnd();
  }

  scrollToEnd() {
    this.element.scrollTop = this.element.scrollHeight;
  }
}

/** What stands where there are no messages yet. */
export function greeting(title, ...more) {
  return h("div", { class: "greeting" }, h("h1", {}, title), ...more);
}
