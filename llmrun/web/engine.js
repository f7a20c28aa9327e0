/**
 * The live view of the engine: what each loaded model is doing. Asked for once a second, and only while
 * the page and this part of it are visible.
 */

import { byId, h, svg } from "./dom.js";
import { bytes, loading, number, seconds, tokens } from "./figures.js";

const EVERY = 1000; // milliseconds
const AFTER_FAILURE = 10_000;
const SAMPLES = 60;

export class EngineView {
  /** `seen(loaded)` is called after each look. */
  constructor(api, seen) {
    this.api = api;
    this.seen = seen;
    this.part = byId("engine");
    this.short = byId("engine-short");
    this.models = byId("engine-models");
    this.speeds = new Map(); // model → its latest tokens/s, the newest last
    this.part.addEventListener("toggle", () => this.wake());
    document.addEventListener("visibilitychange", () => this.wake());
    this.wake();
  }

  get wanted() {
    return this.part.open && !document.hidden;
  }

  wake() {
    if (this.wanted && !this.timer) this.look();
  }

  async look() {
    this.timer = -1;
    let wait = EVERY;
    try {
      const loaded = await this.api.loaded();
      this.draw(loaded);
      this.seen(loaded);
    } catch (error) {
      wait = AFTER_FAILURE;
      this.short.textContent = "";
      this.models.replaceChildren(h("p", { class: "note" }, error.message));
    }
    this.timer = this.wanted ? setTimeout(() => this.look(), wait) : 0;
  }

  draw(loaded) {
    const speed = loaded.reduce((sum, model) => sum + speedOf(model.stats), 0);
    this.short.textContent = speed ? `${number(speed)} tokens/s` : "idle";
    const none = h("p", { class: "note" }, "No model is loaded. The first message loads one.");
    this.models.replaceChildren(...(loaded.length ? loaded.map((model) => this.model(model)) : [none]));
    for (const name of this.speeds.keys()) if (!loaded.some((model) => model.name === name)) this.speeds.delete(name);
  }

  model({ name, state, progress, info, stats, in_flight: inFlight }) {
    const states = { ready: inFlight ? "answering" : "idle", loading: loading(progress) };
    const rows = [["state", states[state] ?? state]];
    if (info) rows.push(["device", info.device], ["context", tokens(info.ctx)]);
    if (stats) {
      rows.push(["batch", `${stats.running} running of ${info?.parallel ?? "?"}`]);
      rows.push(["queue", `${stats.waiting} waiting` + (stats.swapped ? `, ${stats.swapped} put aside` : "")]);
      if (stats.itl_p50_ms) rows.push(["gap", `${seconds(stats.itl_p50_ms)}, p95 ${seconds(stats.itl_p95_ms)}`]);
      if (stats.drafted) rows.push(["drafts", `${stats.accepted} of ${stats.drafted} right`]);
      rows.push(["made", `${tokens(stats.completion_tokens)} in ${stats.steps} steps`]);
    }
    const facts = h("dl", {}, ...rows.flatMap(([term, text]) => [h("dt", {}, term), h("dd", {}, text)]));
    return h("section", { "aria-label": name }, h("h3", {}, name), facts, stats && cells(stats), stats && this.chart(name, stats));
  }

  chart(name, stats) {
    const speed = speedOf(stats);
    const speeds = [...(this.speeds.get(name) ?? []), speed].slice(-SAMPLES);
    this.speeds.set(name, speeds);
    const most = Math.max(...speeds, 1);
    const points = speeds.map((value, at) => `${at + SAMPLES - speeds.length},${20 - (18 * value) / most}`);
    return h("div", { class: "chart" },
      svg("svg", { viewBox: `0 0 ${SAMPLES - 1} 21`, preserveAspectRatio: "none", "aria-hidden": "true" },
        svg("polyline", { points: points.join(" ") })),
      h("span", {}, `${number(speed)} tokens/s`));
  }
}

/** Tokens per second now; what a model that rests made last is past. */
const speedOf = (stats) => (stats?.running ? stats.decode_tps : 0);

/** The KV cache by tier: cells in use, kept for later prompts and free as a bar; what was saved from them. */
function cells(stats) {
  const { kv_used: used, kv_retained: kept, kv_total: total, kv_ram_bytes: ram, kv_disk_bytes: disk } = stats;
  if (!total) return null;
  const part = (kind, share) => {
    const element = h("span", { class: kind });
    element.style.flexGrow = share;
    return element;
  };
  return h("div", { class: "cells" },
    h("div", { class: "cells-bar", "aria-hidden": "true" },
      part("used", used), part("kept", kept), part("free", total - used - kept)),
    h("div", {}, `KV: ${used} in use, ${kept} kept of ${total} cells`),
    h("div", {}, `saved: ${bytes(ram)} in memory, ${bytes(disk)} on disk`));
}
