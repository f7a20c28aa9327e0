/** The page: its parts made once and joined. */

import { Api } from "./api.js";
import { Chat } from "./chat.js";
import { Composer } from "./composer.js";
import { ask, byId } from "./dom.js";
import { Drawer } from "./drawer.js";
import { EngineView } from "./engine.js";
import { loading } from "./figures.js";
import { Models } from "./models.js";
import { editSettings, lastUsed, remember } from "./settings.js";
import { Sidebar } from "./sidebar.js";
import { Store } from "./store.js";
import { themeButton } from "./theme.js";
import { greeting, Transcript } from "./transcript.js";

const say = (text) => (byId("status").textContent = text);

const api = new Api(async (why) => {
  byId("key-why").textContent = `${why ? `${why}. ` : ""}This daemon wants an API key. It is kept until you close this tab.`;
  byId("key").querySelector("input").value = "";
  return (await ask(byId("key")))?.get("key") ?? null;
});
const store = await Store.open();
const chat = new Chat(api, store, {
  changed,
  listed: () => sidebar.draw(),
  unkept: (error) => say(`This browser cannot keep the conversation: ${error.message}`),
});
const models = new Models(api, (name) => {
  chat.current.model = name;
  remember(chat.current);
  if (chat.current.messages.length) chat.save();
});
const drawer = new Drawer();
const transcript = new Transcript(byId("transcript"), actions, () => trouble ?? models.welcome(show));
const sidebar = new Sidebar(chat, store, {
  opened: async (id) => {
    await chat.open(id);
    drawer.set(false);
    show();
  },
  removed: (id) => {
    if (id === chat.current.id) begin();
    else byId("new").focus();
  },
});
const composer = new Composer({
  send: (text) => perform(() => chat.send(text)),
  stop: () => chat.stop(),
  editLast: () => transcript.views.findLast((view) => view.open)?.open(),
});
let trouble = null; // an element that says why there are no models to choose from

function actions(index) {
  return {
    edit: (text) => {
      composer.focus(); // the field that was edited goes
      return perform(() => chat.send(text, index));
    },
    regenerate: () => perform(() => chat.regenerate(index)),
    more: () => perform(() => chat.more(index)),
  };
}

/** Has an answer made, and says to a screen reader when it begins and ends. Whether there is a model to ask. */
async function perform(act) {
  if (!models.all.length) await readModels();
  chat.current.model = models.pick(chat.current.model);
  if (!chat.current.model) {
    show();
    return false;
  }
  remember(chat.current);
  say("The model is answering");
  act().then(ended);
  return true;
}

function ended({ state, notice }) {
  say(state === "done" ? "The answer is complete" : notice);
  models.read().catch(() => {}); // the model is loaded now
}

function changed(conversation, message) {
  if (conversation !== chat.current) return;
  composer.busy = chat.answers();
  if (transcript.views.at(-1)?.message !== message) transcript.show(conversation.messages);
  document.title = `${conversation.title} · llmrun`;
  transcript.touch(message);
}

/** Shows the current conversation. */
function show() {
  chat.current.model = models.pick(chat.current.model);
  composer.busy = chat.answers();
  transcript.show(chat.current.messages);
  document.title = chat.current.messages.length ? `${chat.current.title} · llmrun` : "llmrun";
  sidebar.draw();
  composer.focus();
}

function begin() {
  chat.begin(lastUsed());
  drawer.set(false);
  show();
}

async function readModels() {
  try {
    await models.read();
    trouble = null;
  } catch (error) {
    trouble = greeting("The models cannot be listed", error.message);
  }
}

byId("new").addEventListener("click", begin);
byId("open-settings").addEventListener("click", async () => {
  if ((await editSettings(chat.current)) && chat.current.messages.length) await chat.save();
});
for (const close of document.querySelectorAll("[data-close]")) {
  close.addEventListener("click", () => close.closest("dialog").close());
}
themeButton(byId("theme"), say);
await readModels();
begin();
new EngineView(api, (loaded) => {
  const found = loaded.find(({ name, state }) => name === chat.current.model && state === "loading");
  if (found) transcript.views.at(-1)?.waits?.(`The model is ${loading(found.progress)}`);
});
