from __future__ import annotations

from llmrun.api.app import create_app
from llmrun.api.fields import BODIES, DELETES, markdown, rows
from llmrun.api.openai.bodies import ChatBody
from llmrun.config import Settings
from tests.api.scripted import ScriptedService


def test_bodies_are_those_that_the_routes_read() -> None:
    paths = create_app(ScriptedService(), Settings(), lambda: None).openapi()["paths"]
    read = {
        (method, path): operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        for path, operations in paths.items()
        for method, operation in operations.items()
        if "requestBody" in operation
    }
    assert read == {
        ("delete" if path in DELETES else "post", path): f"#/components/schemas/{body.__name__}"
        for path, body in BODIES.items()
    }


def test_rows_say_what_becomes_of_each_field_down_to_the_parts() -> None:
    found = {row.field: row.verdict for row in rows(ChatBody)}
    assert found["temperature"] == "honoured"
    assert found["service_tier"] == "ignored"
    assert found["audio"] == "refused"
    assert found["tools.N.function.parameters"] == "honoured"
    assert found["messages.N.content.N.image_url"] == "refused"
    assert found["stream_options.include_usage"] == "honoured"


def test_rows_every_field_has_a_note() -> None:
    assert [row.field for body in BODIES.values() for row in rows(body) if row.note in ("", "None")] == []


def test_markdown_has_each_route_over_its_table() -> None:
    text = markdown()
    headings = {
        route for line in text.splitlines() if line.startswith("### ") for route in line[4:].split(", ")
    }
    assert headings == {f"{'DELETE' if route in DELETES else 'POST'} {route}" for route in BODIES}
    assert "### POST /completion, POST /completions\n" in text
    assert '| `modalities` | refused | output other than text; `["text"]` is accepted |' in text
