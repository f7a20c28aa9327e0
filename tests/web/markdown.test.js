import assert from "node:assert/strict";
import { test } from "node:test";
import { parseBlocks } from "../../llmrun/web/markdown.js";

const paragraph = (text) => ({ type: "paragraph", text });
const item = (...blocks) => ({ checked: null, blocks });
const bullets = (...items) => ({ type: "list", start: null, loose: false, items });

const CASES = [
  ["paragraphs keep their line breaks", "a\nb\n\nc", [paragraph("a\nb"), paragraph("c")]],
  ["headings", "# A #\n## B\n####### no", [
    { type: "heading", level: 1, text: "A" }, { type: "heading", level: 2, text: "B" }, paragraph("####### no")]],
  ["a hash that belongs to the heading stays", "# C#", [{ type: "heading", level: 1, text: "C#" }]],
  ["a fence", "a\n```py x\n  b\n\n# c\n```\nd", [
    paragraph("a"), { type: "code", language: "py x", text: "  b\n\n# c" }, paragraph("d")]],
  ["a fence that is still open", "~~~\na\n```", [{ type: "code", language: "", text: "a\n```" }]],
  ["a longer fence holds shorter ones", "````\n```\na\n```\n````", [{ type: "code", language: "", text: "```\na\n```" }]],
  ["a rule, also right below text", "a\n---\n* * *", [paragraph("a"), { type: "rule" }, { type: "rule" }]],
  ["a quote of a list", "> a\n> - b", [{ type: "quote", blocks: [paragraph("a"), bullets(item(paragraph("b")))] }]],
  ["bullets right below text", "a:\n- b\n- c", [paragraph("a:"), bullets(item(paragraph("b")), item(paragraph("c")))]],
  ["two spaces nest below a number", "1. a\n  - b\n2. c", [
    { type: "list", start: 1, loose: false, items: [item(paragraph("a"), bullets(item(paragraph("b")))), item(paragraph("c"))] }]],
  ["a list goes on after code between its items", "1. a\n\n```\nx\n```\n\n2. b", [
    { type: "list", start: 1, loose: false, items: [item(paragraph("a"))] }, { type: "code", language: "", text: "x" },
    { type: "list", start: 2, loose: false, items: [item(paragraph("b"))] }]],
  ["code inside an item", "- a\n  ```\n  x\n    y\n  ```\n- b", [
    bullets(item(paragraph("a"), { type: "code", language: "", text: "x\n  y" }), item(paragraph("b")))]],
  ["blank lines between items make it loose", "- a\n\n- b", [
    { type: "list", start: null, loose: true, items: [item(paragraph("a")), item(paragraph("b"))] }]],
  ["another marker begins another list", "- a\n1. b", [
    bullets(item(paragraph("a"))), { type: "list", start: 1, loose: false, items: [item(paragraph("b"))] }]],
  ["boxes", "- [ ] a\n- [x] b", [
    bullets({ checked: false, blocks: [paragraph("a")] }, { checked: true, blocks: [paragraph("b")] })]],
  ["a text that goes on without indentation", "- a\nb\n\nc", [bullets(item(paragraph("a\nb"))), paragraph("c")]],
  ["a table; bars in code and behind a backslash do not divide", "| a | b |\n|:--|--:|\n| `x|y` | 1 \\| 2 |\n| c |\n\nd", [
    { type: "table", align: ["left", "right"], head: ["a", "b"], rows: [["`x|y`", "1 | 2"], ["c", ""]] }, paragraph("d")]],
  ["bars without a rule are text", "a | b\nc | d", [paragraph("a | b\nc | d")]],
  ["html is text", "<div>\n<b>a</b>", [paragraph("<div>\n<b>a</b>")]],
  ["windows' line ends", "# a\r\nb", [{ type: "heading", level: 1, text: "a" }, paragraph("b")]],
  ["nothing", "", []],
];
for (const [name, text, blocks] of CASES) test(`parseBlocks ${name}`, () => assert.deepEqual(parseBlocks(text), blocks));

test("parseBlocks what is complete does not change while more comes", () => {
  const text = "# a\n\nb\n\n- c\n  - d\n\n```js\ne\n```\n\nf\n\n| g |\n|---|\n| h |\n\ni";
  const whole = parseBlocks(text);
  for (let end = 1; end <= text.length; end += 1) {
    const blocks = parseBlocks(text.slice(0, end));
    assert.deepEqual(blocks.slice(0, -1), whole.slice(0, Math.max(blocks.length - 1, 0)), text.slice(0, end));
  }
});

for (const [name, text] of Object.entries({
  quotes: `${"> ".repeat(5000)}a`, nests: `${"- ".repeat(5000)}a`, wide: `${"|a".repeat(20000)}\n${"|-".repeat(20000)}`,
  rows: "a|\n".repeat(20000), items: "- a\n".repeat(20000), lazy: `- a\n${"b\n".repeat(20000)}`,
  blanks: `- a\n  b\n${"  \n".repeat(20000)}  c`, spaces: `#${" ".repeat(100000)}x`, stars: `${"* ".repeat(50000)}x`,
})) {
  test(`parseBlocks ${name} without end take no time`, () => {
    const began = performance.now();
    parseBlocks(text);
    assert.ok(performance.now() - began < 1500);
  });
}
