import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, loading, number, seconds, tokens } from "../../llmrun/web/figures.js";

test("number and seconds keep two digits that matter", () => {
  assert.deepEqual([0, 3.14, 42.4, 142.6].map(number), ["0", "3.1", "42", "143"]);
  assert.deepEqual([12.6, 1500].map(seconds), ["13 ms", "1.5 s"]);
});

test("loading has a percentage only while the weights are read", () => {
  assert.deepEqual([0, 0.424, 1].map(loading), ["loading", "loading, 42 %", "warming up"]);
});

test("tokens one is one", () => assert.deepEqual([0, 1, 2].map(tokens), ["0 tokens", "1 token", "2 tokens"]));

test("bytes are in a unit that can be read", () => {
  assert.deepEqual([0, 999, 46_200_000, 1.5e9, 4e12].map(bytes), ["0 bytes", "999 bytes", "46 MB", "1.5 GB", "4000 GB"]);
});
