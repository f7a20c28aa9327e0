"""`llmrun fit`: how much memory a model takes here, and how quick it will be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from llmrun.cli import amounts
from llmrun.cli.args import AsJson, ModelName, new_app
from llmrun.cli.layout import Columns
from llmrun.cli.session import session_of
from llmrun.config import parse_setting
from llmrun.store.anatomy import Anatomy, anatomy
from llmrun.store.disk import human
from llmrun.store.hardware import Machine, this_machine
from llmrun.store.plan import Plan, decode_speed, largest_context, plan, streams

if TYPE_CHECKING:
    from llmrun.store import StoredModel

app = new_app()
CONTEXTS = (2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144)
COMPARED = ("f16", "q8_0", "q4_0")
SAID = 512  # tokens in the context for which a speed is told


@app.command()
def fit(
    context: typer.Context,
    model: ModelName,
    ctx: Annotated[int | None, typer.Option(metavar="TOKENS", help="Only this context.", min=1)] = None,
    kv_type: Annotated[str | None, typer.Option(metavar="TYPE", help="Only this KV type.")] = None,
    as_json: AsJson = False,
) -> None:
    """Plan a model's memory on this machine. Of one that is not here only the header is read.

    \b
    Examples:
      llmrun fit smollm2:135m
      llmrun fit hf.co/bartowski/Qwen2.5-0.5B-Instruct-GGUF:Q4_K_M --ctx 8192
    """
    from llmrun.store import Store

    if kv_type is not None:
        parse_setting("kv_type", kv_type, "--kv-type")
    session = session_of(context, as_json=as_json)
    with session.out.waiting(f"reading what {model} is, and measuring the machine"):
        peek = Store(session.paths).peek(model)
        sizes, machine = anatomy(peek.headers), this_machine(measure=True)
    most = peek.model.ctx_train or CONTEXTS[-1]
    contexts = [ctx] if ctx else [size for size in CONTEXTS if size < most] + [most]
    types = [kv_type] if kv_type else list(COMPARED[:1] if sizes.encodes else COMPARED)
    settings = session.settings
    caches = streams(sizes, settings.kv_layout, settings.parallel)
    plans = [plan(sizes, machine, size, kind, peek.company, caches) for kind in types for size in contexts]
    speed = decode_speed(sizes, machine, types[0], min(SAID, contexts[0]))
    largest = {kind: largest_context(sizes, machine, kind, most, peek.company, caches) for kind in types}
    if as_json:
        session.out.json(
            {
                "name": peek.model.name,
                "source": peek.model.source,
                "remote": peek.remote,
                "quant": peek.model.quant,
                "weights": sizes.weights,
                "largest_context": largest,
                "tokens_per_second": speed and round(speed, 1),
                "machine": _machine_record(machine),
                "plans": [_record(one, machine) for one in plans],
            }
        )
        return
    session.out.fields(_facts(peek.model, sizes, machine, speed))
    session.out.result("")
    session.out.records([_record(one, machine) for one in plans], _columns(sizes, machine))
    session.out.result("")
    session.out.fields([("largest context", _largest(largest, most))])


def _facts(
    model: StoredModel, sizes: Anatomy, machine: Machine, speed: float | None
) -> list[tuple[str, str]]:
    gpu = f", {human(machine.gpu_memory)} free on GPUs" if machine.gpu_memory else ""
    reads = f", reads {human(machine.bandwidth)}/s" if machine.bandwidth else ""
    pairs = [
        ("model", f"{model.name}, {model.quant}, {len(sizes.layers)} layers, {model.kind}"),
        ("machine", f"{human(machine.available)} free of {human(machine.total)}{gpu}{reads}"),
        ("weights", human(sizes.weights)),
    ]
    pairs += [("adapter", human(one.size)) for one in model.adapters]
    if model.draft:
        pairs.append(("draft", human(model.draft.size)))
    if sizes.active < 0.9 * sizes.weights:
        pairs.append(("read per token", human(sizes.active)))
    if speed:
        pairs.append(("speed", f"about {amounts.parameters(round(speed))} tokens/s for one answer"))
    return pairs


def _record(one: Plan, machine: Machine) -> dict[str, Any]:
    return {
        "ctx": one.ctx,
        "kv_type": one.kv_type,
        "kv": one.caches,
        "mapped": one.mapped,
        "repacked": one.repacked,
        "compute": one.compute,
        "runtime": one.runtime,
        "beside": one.beside,
        "peak": one.peak,
        "held": one.held,
        "gpu": one.gpu,
        "gpu_layers": one.gpu_layers,
        "layers": one.layers,
        "fits": one.fits(machine),
    }


def _machine_record(machine: Machine) -> dict[str, Any]:
    return {
        "available": machine.available,
        "total": machine.total,
        "gpu_memory": machine.gpu_memory,
        "bandwidth": machine.bandwidth and round(machine.bandwidth),
        "features": sorted(machine.features),
    }


def _columns(sizes: Anatomy, machine: Machine) -> Columns:
    """An encoder has no KV cache to tell of."""
    cache: Columns = {"KV TYPE": lambda one: one["kv_type"], "KV": lambda one: human(one["kv"])}
    columns: Columns = {
        "CONTEXT": lambda one: str(one["ctx"]),
        **({} if sizes.encodes else cache),
        "NEEDED": lambda one: human(one["held"]),
        "PEAK": lambda one: human(one["peak"]),
        "FITS": lambda one: "yes" if one["fits"] else "no",
    }
    if machine.gpu_memory:
        return {**columns, "GPU LAYERS": lambda one: f"{one['gpu_layers']} of {one['layers']}"}
    return columns


def _largest(largest: dict[str, int], most: int) -> str:
    if all(tokens >= most for tokens in largest.values()):
        return f"{most} tokens, all that the model has"
    told = (f"{min(tokens, most)} tokens with {kind}" for kind, tokens in largest.items() if tokens)
    return ", ".join(told) or "none fits; free some memory or take a smaller quant"
