/**
 * Markdown on the page, as it streams: blocks that did not change keep their elements, so that selections,
 * scroll positions and a screen reader's place stay.
 */

import { copyButton } from "./copy.js";
import { h } from "./dom.js";
import { parseInline } from "./inline.js";
import { parseBlocks } from "./markdown.js";

export class Prose {
  constructor() {
    this.element = h("div", { class: "prose", dir: "auto" });
    this.shown = [];
  }

  /** Shows `text`, which often begins with what is shown already. */
  update(text) {
    const blocks = parseBlocks(text).map((block) => ({ block, key: JSON.stringify(block) }));
    let same = 0;
    while (same < blocks.length && blocks[same].key === this.shown[same]?.key) same += 1;
    if (growsCode(this.shown, blocks, same)) {
      this.element.children[same].querySelector("code").firstChild.data = blocks[same].block.text;
      this.shown[same] = blocks[same];
      same += 1;
    }
    while (this.element.children.length > same) this.element.lastChild.remove();
    this.element.append(...blocks.slice(same).map(({ block }) => element(block)));
    this.shown = blocks;
  }
}

/** Whether block `at` is a code block now as before, whose text alone differs. */
function growsCode(shown, blocks, at) {
  const [before, now] = [shown[at]?.block, blocks[at]?.block];
  return before?.type === "code" && now?.type === "code" && before.language === now.language && before.text;
}

const element = (block) => ELEMENTS[block.type](block);

const ELEMENTS = {
  paragraph: ({ text }) => h("p", {}, ...spans(text)),
  // The page's own headings come first: a message begins at the third level.
  heading: ({ level, text }) => h(`h${Math.min(level + 2, 6)}`, { class: `level-${level}` }, ...spans(text)),
  rule: () => h("hr"),
  quote: ({ blocks }) => h("blockquote", {}, ...blocks.map(element)),
  code: ({ language, text }) => {
    const code = h("code", {}, text);
    const name = language.split(/\s/)[0].slice(0, 40);
    const head = h("div", { class: "code-head" }, h("span", {}, name), copyButton(() => code.textContent, "Copy code"));
    return h("div", { class: "code" }, head, h("pre", { tabindex: "0", "aria-label": name ? `Code, ${name}` : "Code" }, code));
  },
  list: ({ start, loose, items }) => {
    const list = start === null ? h("ul") : h("ol", start === 1 ? {} : { start });
    list.append(...items.map((item) => listItem(item, loose)));
    return list;
  },
  table: ({ align, head, rows }) => {
    const cell = (tag) => (text, column) => h(tag, { class: align[column] }, ...spans(text));
    const row = (tag, texts) => h("tr", {}, ...texts.map(cell(tag)));
    const body = h("tbody", {}, ...rows.map((texts) => row("td", texts)));
    const table = h("table", {}, h("thead", {}, row("th", head)), body);
    return h("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Table" }, table);
  },
};

function listItem({ checked, blocks }, loose) {
  const tight = (block) => (block.type === "paragraph" && !loose ? spans(block.text) : [element(block)]);
  const box = checked === null ? null : h("input", { type: "checkbox", disabled: true, checked });
  return h("li", { class: checked === null ? null : "task" }, box, ...blocks.flatMap(tight));
}

const spans = (text) => parseInline(text).map(span);

function span(node) {
  if (typeof node === "string") return node;
  if (node.type === "break") return h("br");
  if (node.type === "code") return h("code", {}, node.text);
  if (node.type === "math") return h("code", { class: "math" }, node.text);
  const children = node.children.map(span);
  if (node.type !== "link") return h(node.type, {}, ...children);
  return h("a", { href: node.href, rel: "noopener noreferrer nofollow", target: "_blank" }, ...children);
}
