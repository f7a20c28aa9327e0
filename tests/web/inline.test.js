import assert from "node:assert/strict";
import { test } from "node:test";
import { parseInline, safeHref } from "../../llmrun/web/inline.js";

/** A tree as short text: strong becomes S(…), a link L[address](…). */
const shown = (text) => parseInline(text).map(short).join("");

function short(node) {
  if (typeof node === "string") return node;
  if (node.type === "break") return "↵";
  if (node.type === "code" || node.type === "math") return `${node.type}{${node.text}}`;
  const inner = node.children.map(short).join("");
  if (node.type === "link") return `L[${node.href}](${inner})`;
  return `${{ strong: "S", em: "E", del: "D" }[node.type]}(${inner})`;
}

const CASES = {
  "plain text": "plain text",
  "**a** and *b* and ~~c~~": "S(a) and E(b) and D(c)",
  "***a***": "S(E(a))",
  "**a *b***": "S(a E(b))",
  "*a **b** c*": "E(a S(b) c)",
  "__a__ _b_ snake_case_name": "S(a) E(b) snake_case_name",
  "2 * 3 * 4": "2 * 3 * 4",
  "**not closed": "**not closed",
  "`a*b*` and ``x`y``": "code{a*b*} and code{x`y}",
  "`open": "`open",
  "\\*a\\* \\\\": "*a* \\",
  "a\nb": "a↵b",
  "a<br>b": "a↵b",
  "&lt;b&gt; &amp; &nope;": "<b> & &nope;",
  "[a *b*](https://x.y/z)": "L[https://x.y/z](a E(b))",
  "[a](https://x.y/w_(z))": "L[https://x.y/w_(z)](a)",
  '[a](https://x.y "title")': "L[https://x.y/](a)",
  "see https://x.y/z?a=1, or (https://x.y).": "see L[https://x.y/z?a=1](https://x.y/z?a=1), or (L[https://x.y/](https://x.y)).",
  "<https://x.y>": "L[https://x.y/](https://x.y)",
  "![a cat](https://x.y/cat.png)": "L[https://x.y/cat.png](a cat)",
  "\\(a_1 * b_1\\) $$x_1*y_1*z$$": "math{\\(a_1 * b_1\\)} math{$$x_1*y_1*z$$}",
  "it costs $5 or $6": "it costs $5 or $6",
};
for (const [text, tree] of Object.entries(CASES)) {
  test(`parseInline ${JSON.stringify(text)}`, () => assert.equal(shown(text), tree));
}

for (const text of [
  "<img src=x onerror=alert(1)>", "<script>alert(1)</script>", "[a](javascript:alert(1))", "[a](data:text/html,x)",
  "[a](/relative)", "[a](JaVaScRiPt:alert(1))", "<javascript:alert(1)>", "![a](file:///etc/passwd)",
]) {
  test(`parseInline what must not be followed stays text: ${text}`, () => assert.deepEqual(parseInline(text), [text]));
}

test("safeHref http, https and mailto alone", () => {
  assert.equal(safeHref("mailto:a@b.c"), "mailto:a@b.c");
  for (const address of ["javascript:1", "blob:x", "ftp://x", "//x.y", "x", "vbscript:x", "java\nscript:1"]) {
    assert.equal(safeHref(address), null, address);
  }
});

for (const piece of ["**a ", "*a _b ", "[", "[a](", "`a ``", "\\(", "$$", "~~x ", "https://", "![", "&", "<a"]) {
  test(`parseInline ${JSON.stringify(piece)} many times takes no time`, { timeout: 2000 }, () => {
    const began = performance.now();
    parseInline(piece.repeat(100_000 / piece.length));
    assert.ok(performance.now() - began < 1500);
  });
}
