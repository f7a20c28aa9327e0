"""Anthropic's official client for Node against a real socket."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from llmrun.types import Event, GenerateRequest
from tests.api.openai.test_models import stored
from tests.api.scripted import AGENT, MODEL, ScriptedService
from tests.api.server import serving
from tests.support.node import Node

pytestmark = pytest.mark.real  # npm fetches the client

PROGRAM = """
import Anthropic from '@anthropic-ai/sdk'
const client = new Anthropic({ baseURL: given.url, apiKey: 'none', maxRetries: 0 })
const { model } = given
const tools = ['look', 'wait'].map((name) => ({ name, input_schema: { type: 'object' } }))
const asked = { model, max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }], tools }
const seen = {}
const whole = await client.messages.create(asked)
seen.kinds = whole.content.map((block) => block.type)
seen.reason = whole.stop_reason
const stream = client.messages.stream(asked)
seen.streamed = ''
stream.on('text', (text) => { seen.streamed += text })
const last = await stream.finalMessage()
seen.same = JSON.stringify(last.content) === JSON.stringify(whole.content)
seen.input = last.content[2].input.at
seen.models = (await client.models.list()).data.map((card) => card.id)
await client.messages.create({ ...asked, model: 'nobody' }).catch((error) => {
  seen.unknown = [error.constructor.name, error.status, error.error.error.type]
})
await client.messages.create({ ...asked, max_tokens: -1 }).catch((error) => {
  seen.wrong = [error.constructor.name, error.message.includes('max_tokens')]
})
console.log(JSON.stringify(seen))
"""


def test_node_client_reads_streams_and_raises() -> None:
    node = Node("@anthropic-ai/sdk")

    async def agent(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        for event in AGENT:
            yield event

    with serving(ScriptedService(agent, stored=[stored(MODEL)])) as url:
        seen = node.run(PROGRAM, url=url, model=MODEL)
    assert seen == {
        "kinds": ["thinking", "text", "tool_use", "tool_use"],
        "reason": "tool_use",
        "streamed": "I look.",
        "same": True,
        "input": "sea",
        "models": [MODEL],
        "unknown": ["NotFoundError", 404, "not_found_error"],
        "wrong": ["BadRequestError", True],
    }
