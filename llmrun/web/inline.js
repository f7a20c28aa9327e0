/**
 * Markdown inside a paragraph: text in, a tree out. Pure; knows no DOM.
 *
 * Nodes: a string, or { type, … } with type "code" (text), "math" (text), "strong", "em", "del" (children),
 * "link" (href, children), "break". HTML is text. Links lead to http, https or mailto, or stay text;
 * images become links, so that showing an answer asks nothing of anybody.
 */

const DEPTH = 12;
const PLAIN = /[^\\`*_~[!<&\n$h]+/y;
const URL_START = /https?:\/\/[^\s<>"`]+/y;
const ESCAPABLE = /[!-'*-/:-@\\^-`{-~]/; // punctuation but brackets, which begin formulas: \( and \[
const ENTITIES = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&nbsp;": "\u00a0" };
const WORD = /[\p{L}\p{N}_]/u;

export function parseInline(text, depth = 0) {
  const nodes = [];
  const state = { depth, nowhere: new Set() };
  let at = 0;
  let plain = "";
  while (at < text.length) {
    PLAIN.lastIndex = at;
    const run = PLAIN.exec(text)?.[0];
    if (run) {
      plain += run;
      at += run.length;
      continue;
    }
    const found = depth < DEPTH ? RULES[text[at]]?.(text, at, state) : null;
    if (!found) {
      plain += text[at];
      at += 1;
    } else {
      if (typeof found.node === "string") plain += found.node;
      else {
        if (plain) nodes.push(plain);
        plain = "";
        nodes.push(found.node);
      }
      at = found.end;
    }
  }
  if (plain) nodes.push(plain);
  return nodes;
}

/** An address that may be followed, as it will be; null for all others. */
export function safeHref(address) {
  try {
    const url = new URL(address);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

const RULES = {
  "\\": (text, at, state) => {
    const next = text[at + 1];
    if (next === "\n") return { node: { type: "break" }, end: at + 2 };
    if (next === "(" || next === "[") return verbatim(text, at, next === "(" ? "\\)" : "\\]", state);
    return next && ESCAPABLE.test(next) ? { node: next, end: at + 2 } : null;
  },
  "$": (text, at, state) => (text.startsWith("$$", at) ? verbatim(text, at, "$$", state) : null),
  "`": code,
  "*": emphasis,
  "_": emphasis,
  "~": (text, at, state) => (text.startsWith("~~", at) ? between(text, at, "~~", "del", state) : null),
  "[": link,
  "!": (text, at, state) => {
    const image = text[at + 1] === "[" ? link(text, at + 1, state) : null;
    if (image && !image.node.children.length) image.node.children.push(image.node.href);
    return image;
  },
  "<": (text, at) => {
    const tag = /<(?:(br ?\/?)|((?:https?:\/\/|mailto:)[^\s<>]+))>/iy;
    tag.lastIndex = at;
    const match = tag.exec(text);
    if (match?.[1]) return { node: { type: "break" }, end: tag.lastIndex };
    const href = match && safeHref(match[2]);
    return href ? { node: { type: "link", href, children: [match[2]] }, end: tag.lastIndex } : null;
  },
  "&": (text, at) => {
    const name = Object.keys(ENTITIES).find((entity) => text.startsWith(entity, at));
    return name ? { node: ENTITIES[name], end: at + name.length } : null;
  },
  // Every line break counts: models mean them, in verses and addresses.
  "\n": (_text, at) => ({ node: { type: "break" }, end: at + 1 }),
  "h": bareUrl,
};

function verbatim(text, at, close, state) {
  const end = search(text, at + 2, close, state, () => true);
  if (end < 0) return null;
  return { node: { type: "math", text: text.slice(at, end + 2) }, end: end + 2 };
}

function code(text, at, state) {
  const ticks = runLength(text, at);
  const marker = "`".repeat(ticks);
  const alone = (i) => text[i - 1] !== "`" && text[i + ticks] !== "`";
  const end = search(text, at + ticks, marker, state, alone);
  if (end < 0) return { node: marker, end: at + ticks };
  let inner = text.slice(at + ticks, end).replaceAll("\n", " ");
  if (inner.trim() && inner.startsWith(" ") && inner.endsWith(" ")) inner = inner.slice(1, -1);
  return { node: { type: "code", text: inner }, end: end + ticks };
}

function emphasis(text, at, state) {
  const mark = text[at];
  const length = runLength(text, at);
  if (mark === "_" && WORD.test(text[at - 1] ?? " ")) return { node: mark.repeat(length), end: at + length };
  const found =
    (length >= 2 && between(text, at, mark + mark, "strong", state)) || between(text, at, mark, "em", state);
  return found || { node: mark.repeat(length), end: at + length };
}

function between(text, at, marker, type, state) {
  const start = at + marker.length;
  if (start >= text.length || /\s/.test(text[start])) return null;
  const mark = marker[0];
  const closes = (i) => {
    const after = text[i + marker.length];
    if (i === start || /\s/.test(text[i - 1])) return false;
    if (mark === "_" && WORD.test(after ?? " ") && after !== "_") return false;
    // "*" does not close at "**", and "**" closes at the end of a longer run: **a *b***
    return after !== mark && (marker.length > 1 || text[i - 1] !== mark);
  };
  const end = search(text, start, marker, state, closes);
  if (end < 0) return null;
  const children = parseInline(text.slice(start, end), state.depth + 1);
  return { node: { type, children }, end: end + marker.length };
}

function link(text, at, state) {
  const label = /\[((?:[^[\]\\]|\\.){0,1000})\]\(\s*<?((?:[^\s()<>]|\([^\s()]*\)){1,2000})>?(?:\s+"[^"]{0,500}")?\s*\)/sy;
  label.lastIndex = at;
  const match = label.exec(text);
  const href = match && safeHref(match[2]);
  if (!href) return null;
  return { node: { type: "link", href, children: parseInline(match[1], state.depth + 1) }, end: label.lastIndex };
}

function bareUrl(text, at) {
  if (WORD.test(text[at - 1] ?? " ")) return null;
  URL_START.lastIndex = at;
  let address = URL_START.exec(text)?.[0].replace(/[.,;:!?'*_~]{1,20}$/, "");
  // A bracket that opened before the address closes after it.
  if (address?.endsWith(")") && !address.includes("(")) address = address.slice(0, -1);
  const href = address && safeHref(address);
  return href ? { node: { type: "link", href, children: [address] }, end: at + address.length } : null;
}

/**
 * Where `marker` is next found so that `fits` holds, or -1. That none is ahead is remembered, so that many
 * openers without an end cost one search.
 */
function search(text, from, marker, state, fits) {
  if (state.nowhere.has(marker)) return -1;
  for (let i = text.indexOf(marker, from); i >= 0; i = text.indexOf(marker, i + 1)) if (fits(i)) return i;
  state.nowhere.add(marker);
  return -1;
}

function runLength(text, at) {
  let end = at;
  while (text[end] === text[at]) end += 1;
  return end - at;
}
