"""Every field of every request body, and whether it is honoured, ignored or refused.

Read off the bodies themselves. `python -m llmrun.api.fields` prints the tables of docs/api.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args, get_origin

import msgspec
from pydantic.fields import FieldInfo

from llmrun.api.anthropic.bodies import CountBody, MessagesBody
from llmrun.api.control import ShutdownBody, StopBody
from llmrun.api.llamacpp.bodies import DetokenizeBody, InfillBody, LlamaCompletionBody, TokenizeBody
from llmrun.api.llamacpp.embedding import LlamaEmbeddingBody
from llmrun.api.ollama.bodies import GenerateBody, OllamaChatBody
from llmrun.api.ollama.embedding import EmbedBody, OllamaEmbeddingsBody
from llmrun.api.ollama.model_bodies import CopyBody, CreateBody, DeleteBody, PullBody, ShowBody
from llmrun.api.openai.bodies import ChatBody, CompletionBody
from llmrun.api.openai.embeddings import EmbeddingsBody
from llmrun.api.openai.responses.bodies import InputTokensBody, ResponsesBody
from llmrun.api.openai.template_routes import TemplateBody
from llmrun.api.rerank import RerankBody
from llmrun.api.schema import Body, Ignored, Refused

BODIES: dict[str, type[Body]] = {
    "/v1/chat/completions": ChatBody,
    "/chat/completions": ChatBody,
    "/v1/completions": CompletionBody,
    "/v1/chat/completions/input_tokens": ChatBody,
    "/chat/completions/input_tokens": ChatBody,
    "/v1/responses": ResponsesBody,
    "/responses": ResponsesBody,
    "/v1/responses/input_tokens": InputTokensBody,
    "/responses/input_tokens": InputTokensBody,
    "/v1/embeddings": EmbeddingsBody,
    "/v1/rerank": RerankBody,
    "/v1/messages": MessagesBody,
    "/v1/messages/count_tokens": CountBody,
    "/api/generate": GenerateBody,
    "/api/chat": OllamaChatBody,
    "/api/embed": EmbedBody,
    "/api/embeddings": OllamaEmbeddingsBody,
    "/api/show": ShowBody,
    "/api/pull": PullBody,
    "/api/create": CreateBody,
    "/api/copy": CopyBody,
    "/api/delete": DeleteBody,
    "/completion": LlamaCompletionBody,
    "/completions": LlamaCompletionBody,
    "/infill": InfillBody,
    "/embedding": LlamaEmbeddingBody,
    "/embeddings": LlamaEmbeddingBody,
    "/rerank": RerankBody,
    "/reranking": RerankBody,
    "/v1/reranking": RerankBody,
    "/tokenize": TokenizeBody,
    "/detokenize": DetokenizeBody,
    "/apply-template": TemplateBody,
    "/llmrun/stop": StopBody,
    "/llmrun/shutdown": ShutdownBody,
}
"""By route; all are POST but those in `DELETES`."""
DELETES = frozenset({"/api/delete"})


@dataclass(frozen=True)
class Row:
    """`field` is a path; `N` stands for any place in a list. Where a field takes one of several objects, the
    object's `type` is a step of the path, as it is in errors."""

    field: str
    verdict: Literal["honoured", "ignored", "refused"]
    note: str


def rows(body: type[Body], prefix: str = "") -> Iterator[Row]:
    """The fields of `body`, each followed by those inside it: honoured ones first, then by name."""
    fields = [(info.alias or name, info) for name, info in body.model_fields.items()]
    found = [(name, info, _row(f"{prefix}{name}", info)) for name, info in fields]
    found.sort(key=lambda item: (item[2].verdict, item[0]))
    for _, info, row in found:
        yield row
        inside = list(_bodies_in(info.annotation))
        for inner, is_list in inside:
            kind = f"{_kind(inner)}." if len(inside) > 1 else ""
            yield from rows(inner, f"{row.field}.N.{kind}" if is_list else f"{row.field}.{kind}")


def _row(path: str, info: FieldInfo) -> Row:
    for mark in info.metadata:
        if isinstance(mark, Ignored):
            return Row(path, "ignored", mark.why)
        if isinstance(mark, Refused):
            unless = "".join(f"; {_json(value)} is accepted" for value in mark.unless)
            return Row(path, "refused", f"{mark.what}{unless}")
    required = "required; " if info.is_required() else ""
    return Row(path, "honoured", f"{required}{info.description}")


def _kind(body: type[Body]) -> str:
    """Which of several bodies this is: its only `type`, which stands in the paths of its errors too."""
    (kind,) = get_args(body.model_fields["type"].annotation)
    return str(kind)


def _json(value: object) -> str:
    return f"`{msgspec.json.encode(value).decode()}`"


def _bodies_in(annotation: object, is_list: bool = False) -> Iterator[tuple[type[Body], bool]]:
    """The bodies that a field's type holds, and whether in a list."""
    origin = get_origin(annotation)
    if origin is None and isinstance(annotation, type) and issubclass(annotation, Body):
        yield annotation, is_list
    for inner in get_args(annotation):
        yield from _bodies_in(inner, is_list or origin is list)


def markdown() -> str:
    """One table a body, under the routes that read it."""
    routes: dict[type[Body], list[str]] = {}
    for route, body in BODIES.items():
        routes.setdefault(body, []).append(f"{'DELETE' if route in DELETES else 'POST'} {route}")
    return "\n\n".join(_table(named, body) for body, named in routes.items()) + "\n"


def _table(routes: Sequence[str], body: type[Body]) -> str:
    lines = [f"### {', '.join(routes)}", "", "| field | | |", "| --- | --- | --- |"]
    lines += [f"| `{row.field}` | {row.verdict} | {row.note} |" for row in rows(body)]
    return "\n".join(lines)


if __name__ == "__main__":
    print(markdown(), end="")
