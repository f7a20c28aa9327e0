/**
 * What happens in conversations: asking, stopping, asking again. Knows the daemon and the store, not the page.
 *
 * Answers go on in conversations that are not shown; each has one at most. `changed(conversation, message)`
 * is called after every change of a message, `listed()` when the list of conversations is another.
 */

import { fold, newAnswer } from "./answer.js";
import { mended, newConversation, requestBody, say } from "./conversation.js";

const SAVE_EVERY = 1500; // milliseconds: what a page that is closed midway may lose

export class Chat {
  constructor(api, store, { changed, listed }) {
    this.api = api;
    this.store = store;
    this.changed = changed;
    this.listed = listed;
    this.running = new Map(); // conversation id → { conversation, abort }
    this.current = newConversation();
  }

  /** Makes another conversation the current one. */
  async open(id) {
    const found = this.running.get(id)?.conversation ?? (await this.store.get(id));
    if (found) this.current = this.running.has(id) ? found : mended(found);
    return this.current;
  }

  begin(like) {
    this.current = newConversation(like);
    return this.current;
  }

  answers(conversation = this.current) {
    return this.running.has(conversation.id);
  }

  stop(conversation = this.current) {
    this.running.get(conversation.id)?.abort.abort();
  }

  /** Sends what the person said, in place of message `at` and all after it. */
  async send(text, at) {
    await this.halt();
    say(this.current, text, at);
    return this.answer(newAnswer(this.current.model));
  }

  /** Another answer in place of message `at` and all after it. */
  async regenerate(at) {
    await this.halt();
    this.current.messages.splice(at);
    return this.answer(newAnswer(this.current.model));
  }

  /** More of the last message. */
  async more(at) {
    await this.halt();
    const [message] = this.current.messages.splice(at);
    const again = { ...newAnswer(this.current.model), content: message.content, reasoning: message.reasoning };
    return this.answer(again, requestBody({ ...this.current, messages: [...this.current.messages, again] }));
  }

  async save(conversation = this.current) {
    await this.store.put(conversation);
    this.listed();
  }

  async remove(id) {
    this.running.get(id)?.abort.abort();
    await this.running.get(id)?.ended;
    await this.store.delete(id);
    this.listed();
  }

  /** Ends the current conversation's answer, so that its messages may change. */
  async halt() {
    this.stop();
    await this.running.get(this.current.id)?.ended;
  }

  answer(message, body = requestBody(this.current)) {
    const conversation = this.current;
    conversation.messages.push(message);
    conversation.updated = Date.now();
    const abort = new AbortController();
    const ended = this.stream(conversation, message, body, abort.signal);
    this.running.set(conversation.id, { conversation, abort, ended });
    this.changed(conversation, message);
    return ended;
  }

  async stream(conversation, message, body, signal) {
    await this.save(conversation);
    let saved = Date.now();
    try {
      for await (const chunk of this.api.chat(body, signal)) {
        fold(message, chunk);
        this.changed(conversation, message);
        if (Date.now() - saved > SAVE_EVERY) {
          saved = Date.now();
          await this.store.put(conversation);
        }
      }
      message.state = "done";
    } catch (error) {
      message.state = signal.aborted ? "stopped" : "failed";
      message.notice = signal.aborted ? "Stopped" : error.message;
    }
    conversation.updated = Date.now();
    this.running.delete(conversation.id);
    this.changed(conversation, message);
    await this.save(conversation);
  }
}
