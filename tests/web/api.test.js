import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { Api } from "../../llmrun/web/api.js";
import { session } from "../../llmrun/web/kept.js";

const REFUSED = () => Response.json({ error: { message: "an API key is needed", code: "unauthorized" } }, { status: 401 });

let asked; // the headers of each request

beforeEach(() => {
  asked = [];
  session.set("llmrun.key", "");
});

/** Answers requests by `reply(path, headers)`. */
function answers(reply) {
  globalThis.fetch = async (path, { headers }) => {
    asked.push(headers);
    return reply(path, headers);
  };
}

/** A daemon that wants this key. */
const keyed = (key) => answers((_path, { authorization }) =>
  authorization === `Bearer ${key}` ? Response.json({ data: [{ id: "tiny:1m" }] }) : REFUSED());

async function all(pieces) {
  const found = [];
  for await (const piece of pieces) found.push(piece);
  return found;
}

test("a key is asked for until it is right, then sent each time", async () => {
  keyed("right");
  const whys = [];
  const given = ["wrong", "right"];
  const api = new Api(async (why) => (whys.push(why), given.shift()));
  assert.equal((await api.models())[0].id, "tiny:1m");
  await api.models();
  assert.deepEqual(whys, ["", "That key is wrong"]);
  assert.equal(asked.length, 4);
});

test("requests that fail beside one another ask for the key once", async () => {
  keyed("right");
  let count = 0;
  const api = new Api(async () => (count += 1, "right"));
  await Promise.all([api.models(), api.models(), api.models()]);
  assert.equal(count, 1);
});

test("a person without a key gets the daemon's words; looking at the engine asks nobody", async () => {
  keyed("right");
  let count = 0;
  const api = new Api(async () => (count += 1, null));
  await assert.rejects(api.models(), { message: "an API key is needed", status: 401, code: "unauthorized" });
  await assert.rejects(api.loaded(), { status: 401 });
  assert.equal(count, 1);
});

test("a daemon that is away, and one that does not speak JSON, are errors in words", async () => {
  const api = new Api(async () => null);
  answers(() => Promise.reject(new TypeError("Failed to fetch")));
  await assert.rejects(api.models(), /The daemon does not answer\. Start it: llmrun serve/);
  answers(() => new Response("<h1>bad gateway</h1>", { status: 502 }));
  await assert.rejects(api.models(), /The daemon answered 502/);
});

test("chat ends at [DONE]; a stream that ends before it has broken off", async () => {
  const api = new Api(async () => null);
  const signal = new AbortController().signal;
  answers(() => new Response('data: {"a":1}\n\ndata: [DONE]\n\n'));
  assert.deepEqual(await all(api.chat({}, signal)), [{ a: 1 }]);
  answers(() => new Response('data: {"a":1}\n\n'));
  await assert.rejects(all(api.chat({}, signal)), { code: "dropped" });
});

test("pull tells each step, and a failure in Ollama's shape", async () => {
  const api = new Api(async () => null);
  answers(() => new Response('{"status":"pulling"}\n{"status":"success"}\n'));
  assert.equal((await all(api.pull("x"))).length, 2);
  answers(() => new Response('{"status":"pulling"}\n{"error":"no space left"}\n'));
  await assert.rejects(all(api.pull("x")), /no space left/);
});
