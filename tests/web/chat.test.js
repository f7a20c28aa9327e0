import assert from "node:assert/strict";
import { test } from "node:test";
import { Chat } from "../../llmrun/web/chat.js";
import { Store } from "../../llmrun/web/store.js";

const text = (content) => ({ choices: [{ delta: { content } }] });

/** A daemon that answers each request with the next script, a function of its signal. */
class Daemon {
  constructor(...scripts) {
    this.scripts = scripts;
    this.bodies = [];
  }

  async *chat(body, signal) {
    this.bodies.push(structuredClone(body));
    yield* this.scripts.shift()(signal);
  }
}

const says = (...words) => async function* () {
  for (const word of words) yield text(word);
};

/** Says one word, then waits until it is stopped. */
const endless = (word) => async function* (signal) {
  yield text(word);
  await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
};

async function chatWith(...scripts) {
  const daemon = new Daemon(...scripts);
  const store = await Store.open(); // Node has no IndexedDB: this one lives in memory
  const failures = [];
  const told = { changed() {}, listed() {}, unkept: (error) => failures.push(error) };
  const chat = new Chat(daemon, store, told);
  chat.begin({ model: "tiny:1m" });
  return { chat, daemon, store, failures };
}

/** Until an answer has its first words. */
async function begun(chat) {
  while (!chat.current.messages.at(-1)?.content) await new Promise((resolve) => setTimeout(resolve, 1));
}

const contents = (conversation) => conversation.messages.map(({ content }) => content);

test("send the answer grows, ends and is kept", async () => {
  const { chat, store } = await chatWith(says("Hel", "lo"));
  const answer = await chat.send("Hi");
  assert.equal(answer.state, "done");
  assert.equal(answer.content, "Hello");
  assert.ok(!chat.answers());
  const [kept] = await store.all();
  assert.deepEqual(contents(kept), ["Hi", "Hello"]);
  assert.equal(kept.title, "Hi");
});

test("stop keeps what was said, and going on asks for the rest of it", async () => {
  const { chat, daemon } = await chatWith(endless("Once "), says("upon"));
  const sent = chat.send("Tell");
  await begun(chat);
  chat.stop();
  assert.equal((await sent).state, "stopped");
  assert.equal((await chat.more(1)).content, "Once upon");
  assert.deepEqual(daemon.bodies[1].messages.at(-1), { role: "assistant", content: "Once " });
  assert.equal(chat.current.messages.length, 2);
});

test("an answer that fails keeps its words and says why", async () => {
  const { chat } = await chatWith(async function* () {
    yield text("Half");
    throw new Error("the runner died");
  }, says("Whole"));
  const failed = await chat.send("Hi");
  assert.deepEqual([failed.state, failed.content, failed.notice], ["failed", "Half", "the runner died"]);
  assert.equal((await chat.regenerate(1)).content, "Whole");
  assert.deepEqual(contents(chat.current), ["Hi", "Whole"]);
});

test("an answer goes on while another conversation is open, and is there on the way back", async () => {
  const { chat } = await chatWith(endless("A"), says("B"));
  const first = chat.send("one");
  await begun(chat);
  const { id } = chat.current;
  chat.begin({ model: "tiny:1m" });
  await chat.send("two");
  assert.deepEqual(contents(chat.current), ["two", "B"]);
  await chat.open(id);
  assert.ok(chat.answers());
  assert.deepEqual(contents(chat.current), ["one", "A"]);
  chat.stop();
  assert.equal((await first).state, "stopped");
});

test("asking anew ends the answer that is being written", async () => {
  const { chat } = await chatWith(endless("A"), says("B"));
  const first = chat.send("one");
  await begun(chat);
  await chat.send("two", 0);
  assert.equal((await first).state, "stopped");
  assert.deepEqual(contents(chat.current), ["two", "B"]);
});

test("a browser that cannot keep a conversation loses no answer", async () => {
  const { chat, store, failures } = await chatWith(says("Hello"));
  store.put = () => Promise.reject(new Error("full"));
  assert.equal((await chat.send("Hi")).content, "Hello");
  assert.ok(failures.length > 0);
});

test("a conversation that is deleted while it is answered does not come back", async () => {
  const { chat, store } = await chatWith(endless("A"));
  chat.send("one");
  await begun(chat);
  await chat.remove(chat.current.id);
  assert.deepEqual(await store.all(), []);
});

test("a conversation that the page left midway is open again, cut short", async () => {
  const { chat, store } = await chatWith();
  const left = structuredClone(chat.current);
  left.messages.push({ role: "assistant", content: "Ha", state: "streaming", notice: "" });
  await store.put(left);
  assert.equal((await chat.open(left.id)).messages[0].state, "failed");
});
