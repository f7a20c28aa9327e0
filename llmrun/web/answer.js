/**
 * An answer as it grows: chunks of `/v1/chat/completions` folded into a message. Pure.
 *
 * A message of the assistant:
 *   content, reasoning  text
 *   state    "streaming", "done", "stopped" (by the person), "failed"
 *   notice   what went wrong, in words; "" where nothing did
 *   finish   the reason it ended: "stop", "length", …
 *   limit    what cut it off, of the reason "length": "tokens", "context", "time", …
 *   progress fraction of the prompt that is computed, null where unknown
 *   figures  tokens and speeds; null until the end
 */

import { number, seconds, tokens } from "./figures.js";

export function newAnswer(model) {
  return {
    role: "assistant", content: "", reasoning: "", state: "streaming", notice: "", finish: "", limit: "",
    progress: null, figures: null, model,
  };
}

/** Takes one chunk into the answer, in place. Throws the error that a chunk carries. */
export function fold(answer, chunk) {
  if (chunk.error) throw Object.assign(new Error(chunk.error.message), { code: chunk.error.code });
  const { prompt_progress: prompt, usage, timings } = chunk;
  if (prompt) answer.progress = prompt.total ? prompt.processed / prompt.total : null;
  if (usage || timings) answer.figures = { ...answer.figures, ...figures(usage, timings) };
  const choice = chunk.choices?.[0];
  if (!choice) return;
  answer.content += choice.delta?.content ?? "";
  answer.reasoning += choice.delta?.reasoning_content ?? "";
  if (choice.finish_reason) answer.finish = choice.finish_reason;
  if (choice.limit) answer.limit = choice.limit;
}

const CUT = {
  tokens: "the limit of tokens is reached", context: "the context is full", time: "its time is up",
};

/** Why an answer is shorter than the model would have made it, in words; "" where it is not. */
export function cutOff({ finish, limit }) {
  if (finish !== "length") return "";
  return `Cut off: ${CUT[limit] ?? "the limit of tokens, or the end of the context"}`;
}

function figures(usage, timings) {
  const known = {};
  if (usage) {
    known.prompt = usage.prompt_tokens;
    known.completion = usage.completion_tokens;
    known.cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
    known.reasoning = usage.completion_tokens_details?.reasoning_tokens ?? 0;
  }
  if (timings) {
    known.speed = timings.predicted_per_second;
    known.promptSpeed = timings.prompt_per_second;
    known.ttft = timings.ttft_ms;
    known.queue = timings.queue_ms;
  }
  return known;
}

/** The figures in words, the short line first, then each by itself. */
export function figureLines({ prompt, completion, cached, reasoning, speed, promptSpeed, ttft, queue }) {
  const short = [tokens(completion)];
  if (speed) short.push(`${number(speed)} tokens/s`);
  if (ttft) short.push(`first after ${seconds(ttft)}`);
  const each = [
    `Answer: ${tokens(completion)}` + (reasoning ? `, ${reasoning} of them thinking` : ""),
    `Prompt: ${tokens(prompt)}` + (cached ? `, ${cached} of them cached` : ""),
  ];
  if (speed) each.push(`Decode: ${number(speed)} tokens/s`);
  if (promptSpeed) each.push(`Prefill: ${number(promptSpeed)} tokens/s`);
  if (ttft) each.push(`First token: ${seconds(ttft)}`);
  if (queue >= 1) each.push(`Queued: ${seconds(queue)}`);
  return { short: short.join(" · "), each };
}
