import assert from "node:assert/strict";
import { test } from "node:test";
import { eventData, lines } from "../../llmrun/web/sse.js";

/** A byte stream that comes in pieces of `size` bytes. */
function stream(text, size, onCancel = () => {}) {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at + size));
      at += size;
    },
    cancel: onCancel,
  });
}

const all = (pieces) => Array.fromAsync?.(pieces) ?? collected(pieces);

async function collected(pieces) {
  const found = [];
  for await (const piece of pieces) found.push(piece);
  return found;
}

const BODY = ': ping\n\ndata: {"a":"wörld 🌍"}\n\nevent: x\r\ndata: one\r\ndata:two\r\n\r\ndata: [DONE]\n\n';
const DATA = ['{"a":"wörld 🌍"}', "one\ntwo", "[DONE]"];

for (const size of [1, 2, 3, 7, 1000]) {
  test(`eventData pieces of ${size} bytes are the same events`, async () => {
    assert.deepEqual(await all(eventData(stream(BODY, size))), DATA);
  });
}

test("eventData an event that was cut short is left out", async () => {
  assert.deepEqual(await all(eventData(stream("data: one\n\ndata: tw", 4))), ["one"]);
});

test("lines the last one needs no end", async () => {
  assert.deepEqual(await all(lines(stream("a\n\nb", 1))), ["a", "", "b"]);
});

test("lines a reader who leaves cancels the stream", async () => {
  let cancelled = false;
  for await (const _ of lines(stream("a\nb\nc\n", 2, () => (cancelled = true)))) break;
  assert.ok(cancelled);
});
