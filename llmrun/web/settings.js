/** The dialog with a conversation's system prompt and sampling; the last used are those of new conversations. */

import { readSettings } from "./conversation.js";
import { ask, byId } from "./dom.js";
import { local } from "./kept.js";

const KEY = "llmrun.last";

/** What a new conversation begins with. */
export function lastUsed() {
  try {
    return JSON.parse(local.get(KEY)) ?? {};
  } catch {
    return {};
  }
}

export function remember({ model, system, settings }) {
  local.set(KEY, JSON.stringify({ model, system, settings }));
}

/** Lets the person change a conversation's settings, in place. Whether they saved. */
export async function editSettings(conversation) {
  const dialog = byId("settings");
  const { elements } = dialog.querySelector("form");
  const shown = { system: conversation.system, ...conversation.settings };
  for (const field of elements) if (field.name) field.value = shown[field.name] ?? "";
  const values = await ask(dialog);
  if (!values) return false;
  conversation.system = values.get("system");
  conversation.settings = readSettings(values);
  remember(conversation);
  return true;
}
