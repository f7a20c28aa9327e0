/**
 * A response's body in pieces: its lines, and the data of its server-sent events.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html
 */

/** The lines of a byte stream, without their ends, as they become whole; what follows the last end too. */
export async function* lines(stream) {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const whole = rest.split("\n");
      rest = whole.pop();
      for (const line of whole) yield line.endsWith("\r") ? line.slice(0, -1) : line;
      if (done) break;
    }
    if (rest) yield rest;
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** The data of each event, as text. Comments (heartbeats) and an event that was cut short are left out. */
export async function* eventData(stream) {
  let data = [];
  for await (const line of lines(stream)) {
    if (line === "") {
      if (data.length) yield data.join("\n");
      data = [];
    } else if (line.startsWith("data:")) {
      data.push(line.slice(line[5] === " " ? 6 : 5));
    }
  }
}
