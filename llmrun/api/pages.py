"""The HTTP reference for people (`/docs`), and `/openapi.json`'s bodies.

The page is whole in itself: no script, font or style from anywhere else, so it works offline and tells
nobody that it was read. The chat page is in `llmrun.api.web`.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema
from starlette.responses import HTMLResponse, Response

import llmrun
from llmrun.api.fields import BODIES, Row, rows

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}td,th{border-top:1px solid #8886;padding:.3rem .6rem;"
    "text-align:left;vertical-align:top}code{font:.9em ui-monospace,monospace}"
    ":root{color-scheme:light dark}"
)
_HEADERS = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}


def page_routes(app: FastAPI) -> APIRouter:
    """`/docs`, which describes the routes that `app` has."""
    router = APIRouter(tags=["pages"])

    @router.get("/docs")
    async def reference() -> Response:
        """The HTTP reference."""
        return HTMLResponse(reference_page(app.openapi()), headers=_HEADERS)

    return router


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI description of `app`, with the bodies that its routes read themselves."""
    described = get_openapi(title="llmrun", version=llmrun.__version__, routes=app.routes)
    template = "#/components/schemas/{model}"
    _, bodies = models_json_schema([(body, "validation") for body in BODIES.values()], ref_template=template)
    described.setdefault("components", {}).setdefault("schemas", {}).update(bodies["$defs"])
    return described


def reference_page(described: dict[str, Any]) -> str:
    """The reference as HTML, out of an OpenAPI description."""
    body = "".join(
        _route(method, path, operation)
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    )
    title = f"llmrun {escape(described['info']['version'])}: HTTP reference"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style><h1>{title}</h1>{body}</html>"
    )


def _route(method: str, path: str, operation: dict[str, Any]) -> str:
    heading = f"<h2><code>{method.upper()} {escape(path)}</code></h2>"
    about = f"<p>{escape(operation.get('description', ''))}</p>"
    return heading + about + (_table(rows(BODIES[path])) if path in BODIES else "")


def _table(fields: Iterator[Row]) -> str:
    cells = "".join(
        f"<tr><td><code>{escape(row.field)}</code><td>{row.verdict}<td>{escape(row.note)}" for row in fields
    )
    return f"<table>{cells}</table>" if cells else ""
