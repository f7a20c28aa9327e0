"""OpenAI's official client for Node against a real socket."""

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
import OpenAI from 'openai'
const client = new OpenAI({ baseURL: given.url + '/v1', apiKey: 'none', maxRetries: 0 })
const { model } = given
const tools = ['look', 'wait'].map((name) => ({ type: 'function', function: { name } }))
const asked = { model, messages: [{ role: 'user', content: 'Hi' }], tools }
const seen = {}
const whole = (await client.chat.completions.create(asked)).choices[0]
seen.content = whole.message.content
seen.calls = whole.message.tool_calls.map((call) => call.function.name)
seen.reason = whole.finish_reason
const stream = client.chat.completions.stream(asked)
seen.streamed = ''
stream.on('content', (text) => { seen.streamed += text })
const last = (await stream.finalChatCompletion()).choices[0]
seen.same = last.message.tool_calls[0].function.arguments === whole.message.tool_calls[0].function.arguments
const response = await client.responses.create({ model, input: 'Hi' })
seen.response = response.output_text
const events = client.responses.stream({ model, input: 'Hi', previous_response_id: response.id })
seen.numbered = true
let number = 0
for await (const event of events) { seen.numbered &&= event.sequence_number === number++ }
seen.final = (await events.finalResponse()).output.map((item) => item.type)
seen.models = (await client.models.list()).data.map((card) => card.id)
await client.chat.completions.create({ ...asked, model: 'nobody' }).catch((error) => {
  seen.unknown = [error.constructor.name, error.status, error.code]
})
await client.chat.completions.create({ ...asked, temperature: -1 }).catch((error) => {
  seen.wrong = [error.constructor.name, error.param]
})
console.log(JSON.stringify(seen))
"""


def test_node_client_reads_streams_and_raises() -> None:
    node = Node("openai")

    async def agent(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        for event in AGENT:
            yield event

    with serving(ScriptedService(agent, stored=[stored(MODEL)])) as url:
        seen = node.run(PROGRAM, url=url, model=MODEL)
    assert seen == {
        "content": "I look.",
        "calls": ["look", "wait"],
        "reason": "tool_calls",
        "streamed": "I look.",
        "same": True,
        "response": "I look.",
        "numbered": True,
        "final": ["reasoning", "message", "function_call", "function_call"],
        "models": [MODEL],
        "unknown": ["NotFoundError", 404, "model_not_found"],
        "wrong": ["BadRequestError", "temperature"],
    }
