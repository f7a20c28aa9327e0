/**
 * Markdown blocks: text in, a list of blocks out. Pure; knows no DOM, and nothing inside a line (inline.js).
 *
 * Blocks: { type: "paragraph", text }, { type: "heading", level, text }, { type: "code", language, text },
 * { type: "quote", blocks }, { type: "rule" }, { type: "list", start (null: bullets), loose, items },
 * { type: "table", align, head, rows }. An item is { checked (null: no box), blocks }.
 *
 * Unfinished text is read as far as it goes: a code fence that is still open reaches to the end. Not read:
 * HTML, reference links, headings underlined by dashes, code by indentation (models indent by accident).
 */

const DEPTH = 12;
const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`\n]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]|$)/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])( +|$)/;
const BOX = /^\[([ xX])\] /;

export const parseBlocks = (text) => parse(text.replaceAll("\r\n", "\n").replaceAll("\t", "    ").split("\n"), 0);

function parse(lines, depth) {
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    const read = READERS.find(([begins]) => begins(lines, at, depth))?.[1] ?? paragraph;
    const { block, next } = read(lines, at, depth);
    if (block) blocks.push(block);
    at = next;
  }
  return blocks;
}

const READERS = [
  [(lines, at) => !lines[at].trim(), (_lines, at) => ({ block: null, next: at + 1 })],
  [(lines, at) => FENCE.test(lines[at]), fence],
  [(lines, at) => HEADING.test(lines[at]), heading],
  [(lines, at) => RULE.test(lines[at]), (_lines, at) => ({ block: { type: "rule" }, next: at + 1 })],
  [(lines, at, depth) => depth < DEPTH && QUOTE.test(lines[at]), quote],
  [(lines, at, depth) => depth < DEPTH && ITEM.test(lines[at]), list],
  [isTable, table],
];

function paragraph(lines, at, depth) {
  let next = at + 1;
  while (next < lines.length && !READERS.some(([begins]) => begins(lines, next, depth))) next += 1;
  const text = lines.slice(at, next).map((line) => line.trim());
  return { block: { type: "paragraph", text: text.join("\n") }, next };
}

function fence(lines, at) {
  const [, mark, language] = FENCE.exec(lines[at]);
  const indent = indentOf(lines[at]);
  const closes = (line) => {
    const text = line.trim();
    return text.length >= mark.length && text === mark[0].repeat(text.length);
  };
  let next = at + 1;
  while (next < lines.length && !closes(lines[next])) next += 1;
  const text = lines.slice(at + 1, next).map((line) => line.slice(Math.min(indentOf(line), indent)));
  return { block: { type: "code", language: language.trim(), text: text.join("\n") }, next: next + 1 };
}

function heading(lines, at) {
  const [, marks] = HEADING.exec(lines[at]);
  let text = lines[at].trim().slice(marks.length).trim();
  let end = text.length;
  while (text[end - 1] === "#") end -= 1;
  if (end === 0 || text[end - 1] === " ") text = text.slice(0, end).trim();
  return { block: { type: "heading", level: marks.length, text }, next: at + 1 };
}

function quote(lines, at, depth) {
  let next = at;
  while (next < lines.length && QUOTE.test(lines[next])) next += 1;
  const inner = lines.slice(at, next).map((line) => line.replace(QUOTE, ""));
  return { block: { type: "quote", blocks: parse(inner, depth + 1) }, next };
}

function list(lines, at, depth) {
  const [, lead, marker] = ITEM.exec(lines[at]);
  const kind = marker.at(-1);
  const items = [];
  let loose = false;
  let next = at;
  while (next < lines.length) {
    const begins = ITEM.exec(lines[next]);
    if (!begins || begins[2].at(-1) !== kind || begins[1].length > lead.length + 1 || RULE.test(lines[next])) break;
    const item = itemLines(lines, next, begins);
    items.push(itemOf(item.lines, depth));
    next = item.next;
    const gap = blankFrom(lines, next);
    if (gap > next && ITEM.test(lines[gap] ?? "")) {
      // Blank lines between two items of this list; after the last they mean nothing.
      loose ||= ITEM.exec(lines[gap])[2].at(-1) === kind;
      next = gap;
    }
  }
  const start = /\d/.test(marker) ? Number.parseInt(marker, 10) : null;
  return { block: { type: "list", start, loose, items }, next };
}

/** The lines of one item, freed of its indentation. Nested lists need two spaces, as models write them. */
function itemLines(lines, at, [whole, lead, marker, space]) {
  const width = space.length > 4 ? lead.length + marker.length + 1 : whole.length;
  const least = lead.length + Math.min(2, width);
  const own = [lines[at].slice(width)];
  let fenced = FENCE.test(own[0]);
  let next = at + 1;
  for (; next < lines.length; next += 1) {
    const line = lines[next];
    if (!line.trim()) {
      const after = blankFrom(lines, next);
      if (after >= lines.length || indentOf(lines[after]) < least) break;
      for (; next < after; next += 1) own.push("");
      next -= 1;
      continue;
    }
    if (indentOf(line) < least && (fenced || begins(line) || !own.at(-1).trim())) break;
    own.push(line.slice(Math.min(indentOf(line), width)));
    if (FENCE.test(own.at(-1))) fenced = !fenced;
  }
  return { lines: own, next };
}

const begins = (line) => [FENCE, HEADING, RULE, QUOTE, ITEM].some((pattern) => pattern.test(line));

function itemOf(lines, depth) {
  const box = BOX.exec(lines[0]);
  const own = box ? [lines[0].slice(box[0].length), ...lines.slice(1)] : lines;
  return { checked: box ? box[1] !== " " : null, blocks: parse(own, depth + 1) };
}

function isTable(lines, at) {
  if (!lines[at].includes("|") || !lines[at + 1]?.includes("-")) return false;
  const rule = cells(lines[at + 1]);
  return rule.every((cell) => /^:?-+:?$/.test(cell)) && rule.length === cells(lines[at]).length;
}

function table(lines, at) {
  const align = cells(lines[at + 1]).map((cell) =>
    cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : "left",
  );
  let next = at + 2;
  while (next < lines.length && lines[next].includes("|")) next += 1;
  const fitted = (line) => {
    const found = cells(line);
    return align.map((_, column) => found[column] ?? "");
  };
  const rows = lines.slice(at + 2, next).map(fitted);
  return { block: { type: "table", align, head: fitted(lines[at]), rows }, next };
}

/** The cells of a row. A bar that is escaped or in code does not divide. */
function cells(line) {
  const text = line.trim().replace(/^\|/, "");
  const found = [""];
  let code = false;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "\\" && text[at + 1] === "|") at += 1;
    else if (text[at] === "`") code = !code;
    else if (text[at] === "|" && !(code && text.indexOf("`", at) >= 0)) {
      found.push("");
      continue;
    }
    found[found.length - 1] += text[at];
  }
  if (found.length > 1 && !found.at(-1).trim()) found.pop();
  return found.map((cell) => cell.trim());
}

function blankFrom(lines, at) {
  let next = at;
  while (next < lines.length && !lines[next].trim()) next += 1;
  return next;
}

const indentOf = (line) => line.length - line.trimStart().length;
