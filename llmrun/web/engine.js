/**
 * The live view of the engine: what each loaded model is doing. Asked for once a second, and only while
 * the page and this part of it are visible.
 */

import { number } from "./answer.js";
import { byId, h, svg } from "./dom.js";

const EVERY = 1000;
const SAMPLES = 60;

export class EngineView {
  constructor(api) {
    this.api = api;
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
    try {
      this.draw(await this.api.loaded());
    } catch (error) {
      this.short.textContent = "";
      this.models.replaceChildren(h("p", { class: "note" }, error.message));
    }
    this.timer = this.wanted ? setTimeout(() => this.look(), EVERY) : 0;
  }

  draw(loaded) {
    const speed = loaded.reduce((sum, model) => sum + (model.stats?.decode_tps ?? 0), 0);
    this.short.textContent = speed ? `${number(speed)} tokens/s` : "idle";
    const none = h("p", { class: "note" }, "No model is loaded. The first message loads one.");
    this.models.replaceChildren(...(loaded.length ? loaded.map((model) => this.model(model)) : [none]));
    for (const name of this.speeds.keys()) if (!loaded.some((model) => model.name === name)) this.speeds.delete(name);
  }

  model({ name, state, progress, info, stats, in_flight: inFlight }) {
    const loading = state === "loading" ? `loading, ${Math.round(progress * 100)} %` : state;
    const rows = [["state", state === "ready" ? (inFlight ? "answering" : "idle") : loading]];
    if (info) rows.push(["device", info.device], ["context", `${info.ctx} tokens`]);
    if (stats) {
      rows.push(["batch", `${stats.running} running of ${info?.parallel ?? "?"}`], ["queue", `${stats.waiting} waiting`]);
      rows.push(["made", `${stats.completion_tokens} tokens in ${stats.steps} steps`]);
    }
    const facts = h("dl", {}, ...rows.flatMap(([term, text]) => [h("dt", {}, term), h("dd", {}, text)]));
    return h("section", { "aria-label": name }, h("h3", {}, name), facts, stats && cells(stats), stats && this.chart(name, stats));
  }

  chart(name, { decode_tps: speed }) {
    const speeds = [...(this.speeds.get(name) ?? []), speed].slice(-SAMPLES);
    this.speeds.set(name, speeds);
    const most = Math.max(...speeds, 1);
    const points = speeds.map((value, at) => `${at + SAMPLES - speeds.length},${20 - (18 * value) / most}`);
    return h("div", { class: "chart" },
      svg("svg", { viewBox: `0 0 ${SAMPLES - 1} 21`, preserveAspectRatio: "none", "aria-hidden": "true" },
        svg("polyline", { points: points.join(" ") })),
      h("span", {}, `${number(speed || 0)} tokens/s`));
  }
}

/** The KV cache as a bar: cells in use, kept for later prompts, free. */
function cells({ kv_used: used, kv_retained: kept, kv_total: total }) {
  if (!total) return null;
  const part = (kind, share) => {
    const element = h("span", { class: kind });
    element.style.flexGrow = share;
    return element;
  };
  return h("div", { class: "cells" },
    h("div", { class: "cells-bar", "aria-hidden": "true" },
      part("used", used), part("kept", kept), part("free", total - used - kept)),
    h("span", {}, `KV cells: ${used} in use, ${kept} kept, ${total} in all`));
}
