import assert from "node:assert/strict";
import { test } from "node:test";
import { cutOff, figureLines, fold, newAnswer } from "../../llmrun/web/answer.js";

const delta = (fields, finish_reason = null) => ({ choices: [{ index: 0, delta: fields, finish_reason }] });

test("fold text, reasoning, progress and figures make one message", () => {
  const answer = newAnswer("tiny:1m");
  fold(answer, delta({ role: "assistant", content: "" }));
  fold(answer, { choices: [], prompt_progress: { total: 40, processed: 10, cache: 0, time_ms: 1 } });
  assert.equal(answer.progress, 0.25);
  fold(answer, delta({ reasoning_content: "Hm" }));
  fold(answer, delta({ reasoning_content: "m." }));
  fold(answer, delta({ content: "Hel" }));
  fold(answer, delta({ content: "lo" }));
  fold(answer, delta({}, "length"));
  fold(answer, {
    choices: [],
    usage: { prompt_tokens: 9, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 5 },
      completion_tokens_details: { reasoning_tokens: 2 } },
    timings: { predicted_per_second: 142.6, prompt_per_second: 900, ttft_ms: 21.4, queue_ms: 0.2 },
  });
  assert.equal(answer.reasoning, "Hmm.");
  assert.equal(answer.content, "Hello");
  assert.equal(answer.finish, "length");
  assert.deepEqual(answer.figures, {
    prompt: 9, completion: 4, cached: 5, reasoning: 2, speed: 142.6, promptSpeed: 900, ttft: 21.4, queue: 0.2,
  });
});

test("cutOff names the limit that ended an answer, and none where it ended by itself", () => {
  const told = (reason, limit) => {
    const answer = newAnswer("tiny:1m");
    fold(answer, { choices: [{ index: 0, delta: {}, finish_reason: reason, ...(limit && { limit }) }] });
    return cutOff(answer);
  };
  assert.match(told("length", "tokens"), /limit of tokens is reached/);
  assert.match(told("length", "context"), /context is full/);
  assert.match(told("length", "time"), /time is up/);
  assert.match(cutOff({ finish: "length" }), /or the end of the context/); // kept by an earlier page
  assert.equal(told("stop"), "");
});

test("fold an error in the stream is thrown with its code, and the text before it stays", () => {
  const answer = newAnswer("tiny:1m");
  fold(answer, delta({ content: "Hel" }));
  const failed = { error: { message: "the runner died. try again", code: "runner_died" } };
  assert.throws(() => fold(answer, failed), { message: "the runner died. try again", code: "runner_died" });
  assert.equal(answer.content, "Hel");
});

test("figureLines name what is known and nothing else", () => {
  const { short, each } = figureLines({ prompt: 9, completion: 4, cached: 5, reasoning: 0, speed: 142.6, ttft: 1234 });
  assert.equal(short, "4 tokens · 143 tokens/s · first after 1.2 s");
  assert.deepEqual(each.slice(0, 2), ["Answer: 4 tokens", "Prompt: 9 tokens, 5 of them cached"]);
  assert.equal(figureLines({ prompt: 1, completion: 1, cached: 0, reasoning: 0, speed: 0 }).short, "1 token");
});
