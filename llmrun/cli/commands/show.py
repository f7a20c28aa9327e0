"""`llmrun show`: what is known of one model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from llmrun.cli import amounts
from llmrun.cli.args import AsJson, ModelName, new_app
from llmrun.cli.options import UNSET, describe
from llmrun.cli.output import Output
from llmrun.cli.records import model_record
from llmrun.cli.session import session_of
from llmrun.errors import NO_TEMPLATE, NOT_FOUND, USAGE, LlmrunError
from llmrun.store import Modelfile, Store, StoredModel, format_modelfile, parse_reference, read_header
from llmrun.store.disk import human

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
    """Show what is known of a model on this machine.

    \b
    Examples:
      llmrun show smollm2:135m
      llmrun show smollm2:135m --template
    """
    session = session_of(context)
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
    stored = Store(session.paths).resolve(model)
    if as_json:
        session.out.mode = "json"
    part: Callable[[Output, StoredModel], None] = parts[0] if parts else _details
    part(session.out, stored)


def template_of(model: StoredModel) -> str | None:
    """The model's chat template, its own or the file's."""
    return model.template or read_header(model.path).text("tokenizer.chat_template")


def _details(out: Output, model: StoredModel) -> None:
    if out.mode == "json":
        out.json({**model_record(model), "template": template_of(model)})
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
        ("sha256", model.sha256 or "not computed"),
        ("modified", model.modified.astimezone().strftime("%Y-%m-%d %H:%M")),
        *(("file", f"{file}{' (missing)' if not file.exists() else ''}") for file in model.files),
    ]
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


def _modelfile(out: Output, model: StoredModel) -> None:
    described = Modelfile(
        sources=(parse_reference(model.source),),
        sha256=model.sha256,
        size=model.size,
        options=model.options,
        template=model.template,
        system=model.system,
        messages=model.messages,
        license=model.license,
    )
    _part(out, "modelfile", format_modelfile(described))


def _template(out: Output, model: StoredModel) -> None:
    template = template_of(model)
    if template is None:
        raise LlmrunError(NO_TEMPLATE, f"{model.name} has no chat template")
    _part(out, "template", template)


def _license(out: Output, model: StoredModel) -> None:
    if not model.license:
        raise LlmrunError(NOT_FOUND, f"{model.name} does not state its licence", hint=f"see {model.source}")
    _part(out, "license", model.license)


def _tensors(out: Output, model: StoredModel) -> None:
    rows = [
        {"name": tensor.name, "type": tensor.type.name, "shape": list(tensor.shape), "size": tensor.size}
        for file in model.files
        for tensor in read_header(file).tensors
    ]
    columns = {
        "NAME": lambda row: row["name"],
        "TYPE": lambda row: row["type"],
        "SHAPE": lambda row: " × ".join(map(str, row["shape"])),
        "SIZE": lambda row: human(row["size"]),
    }
    out.records(rows, columns)
