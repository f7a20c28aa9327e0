"""`llmrun show`: what is known of one model."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Annotated

import typer

from llmrun.cli import amounts
from llmrun.cli.args import AsJson, ModelName, new_app
from llmrun.cli.options import UNSET, describe
from llmrun.cli.output import Output
from llmrun.cli.records import model_record
from llmrun.cli.session import session_of
from llmrun.errors import NO_TEMPLATE, NOT_FOUND, USAGE, LlmrunError
from llmrun.store import Store, format_modelfile, modelfile_of
from llmrun.store.disk import human
from llmrun.store.peeking import Peek

app = new_app()


@app.command()
def show(
    context: typer.Context,
    model: ModelName,
    as_json: AsJson = False,
    modelfile: Annotated[bool, typer.Option("--modelfile", help="Only its Modelfile.")] = False,
    template: Annotated[bool, typer.Option("--template", help="Only its chat template.")] = False,
    license_: Annotated[bool, typer.Option("--license", help="Only its licence.")] = False,
    tensors: Annotated[bool, typer.Option("--tensors", help="Only its tensors.")] = False,
) -> None:
    """Show what is known of a model. Of one that is not here only the header is read.

    \b
    Examples:
      llmrun show smollm2:135m
      llmrun show smollm2:135m --template
      llmrun show hf.co/bartowski/Qwen2.5-0.5B-Instruct-GGUF:Q4_K_M
    """
    session = session_of(context, as_json=as_json)
    parts = [
        part
        for wanted, part in (
            (modelfile, _modelfile),
            (template, _template),
            (license_, _license),
            (tensors, _tensors),
        )
        if wanted
    ]
    if len(parts) > 1:
        raise LlmrunError(USAGE, "only one part can be shown at a time", hint="leave out all options but one")
    store = Store(session.paths)
    with session.out.waiting(f"reading what {model} is") if store.can_pull(model) else nullcontext():
        peek = store.peek(model)
    part: Callable[[Output, Peek], None] = parts[0] if parts else _details
    part(session.out, peek)


def _template_of(peek: Peek) -> str | None:
    """The model's chat template, its own or the file's."""
    return peek.model.template or peek.headers[0].text("tokenizer.chat_template")


def _details(out: Output, peek: Peek) -> None:
    model = peek.model
    if out.mode == "json":
        out.json({**model_record(model), "template": _template_of(peek), "remote": peek.remote})
        return
    pairs = [
        ("name", model.name),
        ("architecture", model.architecture),
        ("parameters", amounts.parameters(model.parameters)),
        ("quant", model.quant),
        ("size", human(model.size)),
        ("context", f"{model.ctx_train} tokens" if model.ctx_train else "not stated"),
        ("kind", model.kind),
        ("license", model.license.strip().splitlines()[0] if model.license.strip() else "not stated"),
        ("source", model.source),
        ("sha256", model.sha256 or ("not stated" if peek.remote else "not computed")),
    ]
    if peek.remote:
        pairs.append(("here", f"no; llmrun pull {model.name}"))
    else:
        pairs.append(("modified", model.modified.astimezone().strftime("%Y-%m-%d %H:%M")))
        pairs += [("file", str(file)) for file in model.files]
    pairs += [("adapter", one.source or one.path.name) for one in model.adapters]
    if model.draft:
        pairs.append(("draft", model.draft.source or model.draft.path.name))
    if model.system:
        pairs.append(("system", model.system))
    pairs += [(f"message ({message.role})", message.content) for message in model.messages]
    own = describe(model.options)
    pairs += [(name, value) for name, value in own.items() if value != UNSET]
    out.fields(pairs)


def _part(out: Output, name: str, text: str) -> None:
    if out.mode == "json":
        out.json({name: text})
    else:
        out.result(text.removesuffix("\n"))


def _modelfile(out: Output, peek: Peek) -> None:
    _part(out, "modelfile", format_modelfile(modelfile_of(peek.model)))


def _template(out: Output, peek: Peek) -> None:
    template = _template_of(peek)
    if template is None:
        raise LlmrunError(NO_TEMPLATE, f"{peek.model.name} has no chat template")
    _part(out, "template", template)


def _license(out: Output, peek: Peek) -> None:
    model = peek.model
    if not model.license:
        raise LlmrunError(NOT_FOUND, f"{model.name} does not state its licence", hint=f"see {model.source}")
    _part(out, "license", model.license)


def _tensors(out: Output, peek: Peek) -> None:
    rows = [
        {"name": tensor.name, "type": tensor.type.name, "shape": list(tensor.shape), "size": tensor.size}
        for header in peek.headers
        for tensor in header.tensors
    ]
    columns = {
        "NAME": lambda row: row["name"],
        "TYPE": lambda row: row["type"],
        "SHAPE": lambda row: " × ".join(map(str, row["shape"])),
        "SIZE": lambda row: human(row["size"]),
    }
    out.records(rows, columns)
