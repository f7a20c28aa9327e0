"""Ollama's official client for Node against a real socket."""

from __future__ import annotations

import pytest

from tests.api.openai.test_models import stored
from tests.api.scripted import MODEL, ScriptedService
from tests.api.server import serving
from tests.support.node import Node

pytestmark = pytest.mark.real  # npm fetches the client

PROGRAM = """
import { Ollama } from 'ollama'
const client = new Ollama({ host: given.url })
const { model } = given
const messages = [{ role: 'user', content: 'Hi' }]
const seen = {}
seen.whole = (await client.chat({ model, messages })).message.content
seen.streamed = ''
for await (const part of await client.generate({ model, prompt: 'Hi', stream: true })) {
  seen.streamed += part.response
  if (part.done) seen.reason = part.done_reason
}
seen.models = (await client.list()).models.map((model) => model.name)
seen.unloaded = (await client.generate({ model, prompt: '', keep_alive: 0 })).done_reason
seen.copied = (await client.copy({ source: model, destination: 'mine' })).status
seen.pulled = []
for await (const step of await client.pull({ model: 'new', stream: true })) seen.pulled.push(step.status)
await client.chat({ model: 'nobody', messages }).catch((error) => {
  seen.unknown = [error.name, error.status_code, error.error.includes('not found')]
})
await client.generate({ model, prompt: 'Hi', options: { top_p: 3 } }).catch((error) => {
  seen.wrong = [error.status_code, error.error.includes('options.top_p')]
})
console.log(JSON.stringify(seen))
"""


def test_node_client_reads_streams_and_raises() -> None:
    node = Node("ollama")
    with serving(ScriptedService(stored=[stored(MODEL)])) as url:
        seen = node.run(PROGRAM, url=url, model=MODEL)
    assert seen == {
        "whole": "Hello wörld",
        "streamed": "Hello wörld",
        "reason": "stop",
        "models": [MODEL],
        "unloaded": "unload",
        "copied": "success",
        "pulled": [
            "pulling manifest",
            "Q4_0 fits this machine",
            "pulling x.gguf",
            "pulling x.gguf",
            "verifying sha256 digest",
            "success",
        ],
        "unknown": ["ResponseError", 404, True],
        "wrong": [400, True],
    }
