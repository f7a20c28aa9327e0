/**
 * Conversations in this browser's IndexedDB. They never leave it, but in requests for answers.
 * Where the browser keeps nothing (some private windows), they live as long as the page.
 */

const NAME = "llmrun";
const TABLE = "conversations";

export class Store {
  /** An open store; `kept` says whether it outlives the page. */
  static async open() {
    const store = new Store();
    try {
      store.database = await opened();
    } catch {
      store.memory = new Map();
    }
    return store;
  }

  get kept() {
    return Boolean(this.database);
  }

  /** All conversations, the latest first. */
  async all() {
    const found = this.memory ? [...this.memory.values()] : await this.do("readonly", (table) => table.getAll());
    return found.sort((a, b) => b.updated - a.updated);
  }

  async get(id) {
    return this.memory ? this.memory.get(id) : this.do("readonly", (table) => table.get(id));
  }

  async put(conversation) {
    if (this.memory) this.memory.set(conversation.id, structuredClone(conversation));
    else await this.do("readwrite", (table) => table.put(conversation));
  }

  async delete(id) {
    if (this.memory) this.memory.delete(id);
    else await this.do("readwrite", (table) => table.delete(id));
  }

  do(mode, ask) {
    return settled(ask(this.database.transaction(TABLE, mode).objectStore(TABLE)));
  }
}

function opened() {
  const request = indexedDB.open(NAME, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(TABLE, { keyPath: "id" });
  return settled(request);
}

function settled(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
