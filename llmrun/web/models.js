/** The choice of a model; where there is none, how to get one. */

import { byId, h } from "./dom.js";
import { greeting } from "./transcript.js";

const DEFAULT = "smollm2:135m";

export class Models {
  /** `chosen(name)` is called when the person picks one. */
  constructor(api, chosen) {
    this.api = api;
    this.select = byId("model");
    this.all = [];
    this.select.addEventListener("change", () => chosen(this.select.value));
    // What is loaded changes by itself.
    this.select.addEventListener("pointerdown", () => this.read());
  }

  /** Reads the list anew; ApiError where that fails. */
  async read() {
    const writes = (model) => model.meta?.kind !== "embedding" && model.meta?.kind !== "reranker";
    this.all = (await this.api.models()).filter(writes);
    const value = this.select.value;
    const options = this.all.map(({ id, meta }) =>
      h("option", { value: id }, meta?.loaded ? `${id} (loaded)` : id));
    if (!options.length) options.push(h("option", { value: "" }, "no model"));
    this.select.replaceChildren(...options);
    if (value) this.pick(value);
  }

  /** The model to use where `name` is wanted: itself, else a loaded one, else the first. */
  pick(name) {
    const found =
      this.all.find(({ id }) => id === name) ?? this.all.find(({ meta }) => meta?.loaded) ?? this.all[0];
    this.select.value = found?.id ?? "";
    return this.select.value;
  }

  /** What an empty conversation shows. `pulled()` is called when there is a model at last. */
  welcome(pulled) {
    if (this.all.length) return greeting("What would you like to know?");
    const state = h("p", { class: "pull-state", role: "status" });
    const bar = h("progress", { hidden: true, "aria-label": "Download" });
    const pull = h("button", { type: "button", class: "main" }, "Pull it now (98 MB)");
    pull.addEventListener("click", async () => {
      pull.disabled = true;
      try {
        await this.pull(DEFAULT, state, bar);
        await this.read();
        pulled();
      } catch (error) {
        state.textContent = error.message;
        pull.disabled = false;
      }
    });
    return greeting("No model on this machine yet",
      h("p", {}, "Pull one in a terminal, then reload this page:"),
      h("pre", {}, h("code", {}, `llmrun pull ${DEFAULT}`)), pull, bar, state);
  }

  async pull(name, state, bar) {
    for await (const { status, total, completed } of this.api.pull(name)) {
      state.textContent = status;
      bar.hidden = !total;
      if (total) {
        bar.max = total;
        bar.value = completed;
      }
    }
  }
}
