/**
 * Requests to the daemon that served this page. Addresses are relative, so that a proxy may put it anywhere.
 * The API key, where one is wanted, lives in this tab's session and nowhere else.
 */

import { session } from "./kept.js";
import { eventData, lines } from "./sse.js";

const KEY = "llmrun.key";

export class ApiError extends Error {
  /** `status` is 0 where no answer came. */
  constructor(message, status, code = "") {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export class Api {
  /** `askForKey(why)` resolves to a key, or to null where the person has none. */
  constructor(askForKey) {
    this.askForKey = askForKey;
    this.asking = null;
  }

  async models() {
    return (await (await this.request("v1/models")).json()).data;
  }

  async loaded() {
    return (await this.request("llmrun/ps", { quiet: true })).json();
  }

  /** The chunks of an answer. Throws where the stream ends without its end. */
  async *chat(body, signal) {
    const response = await this.request("v1/chat/completions", { body, signal });
    try {
      for await (const data of eventData(response.body)) {
        if (data === "[DONE]") return;
        yield JSON.parse(data);
      }
    } catch (error) {
      throw signal.aborted ? error : new ApiError("The connection to the daemon broke off", 0, "dropped");
    }
    throw new ApiError("The answer broke off before its end", 0, "dropped");
  }

  /** The status objects of a pull. */
  async *pull(model, signal) {
    const response = await this.request("api/pull", { body: { model }, signal });
    for await (const line of lines(response.body)) {
      const status = JSON.parse(line);
      if (status.error) throw new ApiError(status.error, response.status);
      yield status;
    }
  }

  /**
   * A response that went well. Asks for the key where the daemon wants one.
   * quiet  a request that nobody waits for, which must not open a dialog
   */
  async request(path, { body, signal, quiet = false } = {}) {
    for (;;) {
      const key = session.get(KEY);
      const response = await this.send(path, body, signal, key);
      if (response.ok) return response;
      const error = await failure(response);
      if (response.status !== 401 || quiet) throw error;
      if (session.get(KEY) === key && !(await this.newKey(key))) throw error;
    }
  }

  async send(path, body, signal, key) {
    const headers = key ? { authorization: `Bearer ${key}` } : {};
    const posted = body && { method: "POST", body: JSON.stringify(body) };
    if (body) headers["content-type"] = "application/json";
    try {
      return await fetch(path, { ...posted, headers, signal, cache: "no-store" });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ApiError("The daemon does not answer. Start it: llmrun serve", 0, "unreachable");
    }
  }

  /** Whether there is a new key. Requests that fail beside one another ask once. */
  newKey(old) {
    this.asking ??= this.askForKey(old ? "That key is wrong" : "").then((key) => {
      this.asking = null;
      if (key) session.set(KEY, key);
      return Boolean(key);
    });
    return this.asking;
  }
}

async function failure(response) {
  const body = await response.json().catch(() => ({}));
  const error = body.error ?? {};
  const message = typeof error === "string" ? error : error.message;
  return new ApiError(message || `The daemon answered ${response.status}`, response.status, error.code);
}
