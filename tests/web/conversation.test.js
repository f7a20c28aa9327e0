import assert from "node:assert/strict";
import { test } from "node:test";
import { mended, newConversation, readSettings, requestBody, say, titleOf, toReplaceIn } from "../../llmrun/web/conversation.js";

const answered = (content, fields = {}) => ({ role: "assistant", content, reasoning: "", state: "done", ...fields });

function conversation(...messages) {
  return { ...newConversation({ model: "tiny:1m" }, 0), messages };
}

test("say the first words are the title, unless the person gave one", () => {
  const first = conversation();
  say(first, "What is\n rain?");
  assert.equal(first.title, "What is rain?");
  const named = { ...conversation(), named: true, title: "Weather" };
  say(named, "What is rain?");
  assert.equal(named.title, "Weather");
});

test("say in place of an earlier message drops what came after it", () => {
  const edited = conversation({ role: "user", content: "a" }, answered("b"), { role: "user", content: "c" }, answered("d"));
  say(edited, "C", 2);
  assert.deepEqual(edited.messages.map(({ content }) => content), ["a", "b", "C"]);
});

test("toReplaceIn the last question is replaced in place, an earlier one in a copy", () => {
  const long = conversation({ role: "user", content: "a" }, answered("b"), { role: "user", content: "c" }, answered("d"));
  for (const at of [2, 3, 4]) assert.equal(toReplaceIn(long, at), long);
  const copy = toReplaceIn(long, 0);
  say(copy, "A", 0);
  assert.notEqual(copy.id, long.id);
  assert.deepEqual(copy.messages.map(({ content }) => content), ["A"]);
  assert.deepEqual(long.messages.map(({ content }) => content), ["a", "b", "c", "d"]);
});

test("requestBody sends what was set, thoughts left out, and asks for a stream with its figures", () => {
  const body = requestBody({
    ...conversation({ role: "user", content: "a" }, answered("b", { reasoning: "hm" }), { role: "user", content: "c" }),
    system: "Be brief.", settings: { temperature: 0, seed: 7 },
  });
  assert.deepEqual(body, {
    model: "tiny:1m",
    messages: [
      { role: "system", content: "Be brief." }, { role: "user", content: "a" },
      { role: "assistant", content: "b" }, { role: "user", content: "c" },
    ],
    stream: true, stream_options: { include_usage: true }, return_progress: true, temperature: 0, seed: 7,
  });
});

test("requestBody an answer to go on from keeps its thoughts; one that said nothing is left out", () => {
  const going = requestBody(conversation({ role: "user", content: "a" }, answered("b", { reasoning: "hm" })));
  assert.deepEqual(going.messages.at(-1), { role: "assistant", content: "b", reasoning_content: "hm" });
  const silent = requestBody(conversation({ role: "user", content: "a" }, answered(""), { role: "user", content: "c" }));
  assert.deepEqual(silent.messages.map(({ role }) => role), ["user", "user"]);
});

test("requestBody thinking off, on and by effort are fields of the API", () => {
  const fields = (thinking) => requestBody({ ...conversation(), settings: { thinking } });
  assert.equal(fields("off").reasoning_effort, "none");
  assert.equal(fields("high").reasoning_effort, "high");
  assert.equal(fields("on").chat_template_kwargs.enable_thinking, true);
  assert.ok(!("thinking" in fields("on")) && !("reasoning_effort" in fields(undefined)));
});

test("readSettings empty fields are not set, zero is", () => {
  const values = new Map([["temperature", "0"], ["top_p", ""], ["seed", " 12 "], ["thinking", ""], ["ctx", "x"]]);
  assert.deepEqual(readSettings(values), { temperature: 0, seed: 12 });
});

test("titleOf a long text ends with a whole word", () => {
  assert.equal(titleOf("one two three four five six seven eight nine ten eleven"), "one two three four five six seven eight nine…");
  assert.equal(titleOf("  "), "New chat");
});

test("mended an answer that was being written says that it was cut short", () => {
  const [, message] = mended(conversation({ role: "user", content: "a" }, answered("b", { state: "streaming" }))).messages;
  assert.equal(message.state, "failed");
  assert.ok(message.notice);
  assert.equal(message.content, "b");
});
