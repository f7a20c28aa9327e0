/**
 * Conversations as plain data, and the requests they make. Pure.
 *
 * { id, title, named, created, updated, model, system, settings, messages }; times in milliseconds.
 * `named`: the person gave the title. `settings` holds what was set, under the names of the form.
 */

const TITLE = 48;

export function newConversation({ model = "", system = "", settings = {} } = {}, now = Date.now()) {
  return {
    id: crypto.randomUUID?.() ?? `${now}-${Math.random().toString(36).slice(2)}`,
    title: "New chat", named: false, created: now, updated: now, model, system, settings, messages: [],
  };
}

/** The first words of a text, for a list. */
export function titleOf(text) {
  const line = text.trim().replace(/\s+/g, " ");
  if (line.length <= TITLE) return line || "New chat";
  return `${line.slice(0, TITLE).replace(/\s+\S*$/, "")}…`;
}

/** Adds what the person said, in place of everything from message `at` on. */
export function say(conversation, text, at = conversation.messages.length) {
  conversation.messages.splice(at, Infinity, { role: "user", content: text });
  if (at === 0 && !conversation.named) conversation.title = titleOf(text);
}

/**
 * The conversation in which message `at` is to be replaced: itself where that costs one question and its
 * answer, else a copy, so that what came after stays in the list.
 */
export function toReplaceIn(conversation, at, now = Date.now()) {
  if (!conversation.messages.slice(at + 1).some(({ role }) => role === "user")) return conversation;
  return { ...structuredClone(conversation), id: newConversation({}, now).id, created: now, updated: now };
}

/** The body that asks for the next turn, or for more of the last message where that is the assistant's. */
export function requestBody({ model, system, settings, messages }) {
  const turns = messages.filter((message) => message.role === "user" || message.content);
  const last = turns.at(-1);
  const sent = turns.map((message) =>
    message === last && message.role === "assistant" && message.reasoning
      ? { role: message.role, content: message.content, reasoning_content: message.reasoning }
      : { role: message.role, content: message.content },
  );
  if (system.trim()) sent.unshift({ role: "system", content: system });
  const { thinking, ...numbers } = settings;
  return {
    model, messages: sent, stream: true, stream_options: { include_usage: true }, return_progress: true,
    ...numbers, ...thinkingFields(thinking),
  };
}

function thinkingFields(thinking) {
  if (!thinking) return {};
  if (thinking === "off") return { reasoning_effort: "none" };
  // OpenAI's dialect has no plain "on": these are the variables that chat templates read.
  if (thinking === "on") return { chat_template_kwargs: { enable_thinking: true, thinking: true } };
  return { reasoning_effort: thinking };
}

/** Settings out of a form's values: numbers as numbers, empty ones left out. */
export function readSettings(values) {
  const settings = {};
  for (const name of ["temperature", "top_p", "max_tokens", "seed", "ctx"]) {
    const text = String(values.get(name) ?? "").trim();
    if (text !== "" && Number.isFinite(Number(text))) settings[name] = Number(text);
  }
  if (values.get("thinking")) settings.thinking = values.get("thinking");
  return settings;
}

/** Answers that were still being written when the page went away are cut short, and say so. */
export function mended(conversation) {
  for (const message of conversation.messages) {
    if (message.state !== "streaming") continue;
    message.state = "failed";
    message.notice = "The page was closed before the answer was complete";
  }
  return conversation;
}
