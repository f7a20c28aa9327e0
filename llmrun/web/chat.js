/**
 * What happens in conversations: asking, stopping, asking again. Knows the daemon and the store, not the page.
 *
 * Answers go on in conversations that are not shown; each has one at most. `changed(conversation, message)`
 * is called after every change of a message, `listed()` when the list of conversations is another,
 * `unkept(error)` where one could not be kept. What asks resolves to the answer when it has ended.
 */

import { fold, newAnswer } from "./answer.js";
import { mended, newConversation, requestBody, say, toReplaceIn } from "./conversation.js";

const SAVE_EVERY = 1500; // milliseconds: what a page that is closed midway may lose

export class Chat {
  constructor(api, store, { changed, listed, unkept }) {
    this.api = api;
    this.store = store;
    this.changed = changed;
    this.listed = listed;
    this.unkept = unkept;
    this.running = new Map(); // conversation id → { conversation, abort, ended }
    this.current = newConversation();
  }

  /** Makes another conversation the current one. */
  async open(id) {
    const found = await this.store.get(id);
    // The one that is being answered is the object that grows.
    const running = this.running.get(id)?.conversation;
    if (running || found) this.current = running ?? mended(found);
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

  /** Sends what the person said, in place of message `at` and all after it; see `toReplaceIn`. */
  async send(text, at = this.current.messages.length) {
    const conversation = toReplaceIn(await this.atRest(), at);
    this.current = conversation;
    say(conversation, text, at);
    return this.answer(conversation, newAnswer(conversation.model));
  }

  /** Another answer in place of message `at` and all after it. */
  async regenerate(at) {
    const conversation = await this.atRest();
    conversation.messages.splice(at);
    return this.answer(conversation, newAnswer(conversation.model));
  }

  /** More of message `at`, the last. */
  async more(at) {
    const conversation = await this.atRest();
    const [{ content, reasoning }] = conversation.messages.splice(at);
    const message = { ...newAnswer(conversation.model), content, reasoning };
    const body = requestBody({ ...conversation, messages: [...conversation.messages, message] });
    return this.answer(conversation, message, body);
  }

  /** Keeps a conversation; a browser that cannot is no reason to lose an answer. */
  async save(conversation = this.current) {
    await this.store.put(conversation).catch((error) => this.unkept(error));
    this.listed();
  }

  async remove(id) {
    const running = this.running.get(id);
    running?.abort.abort();
    await running?.ended;
    await this.store.delete(id);
    this.listed();
  }

  /** The current conversation, its answer ended, so that its messages may change. */
  async atRest() {
    const conversation = this.current;
    this.stop(conversation);
    await this.running.get(conversation.id)?.ended;
    return conversation;
  }

  answer(conversation, message, body = requestBody(conversation)) {
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
          await this.store.put(conversation).catch(() => {}); // said when it ends
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
    return message;
  }
}
