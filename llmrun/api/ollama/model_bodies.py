"""The bodies of the routes that show, fetch and manage models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from llmrun.api.ollama.bodies import JinjaOrGo
from llmrun.api.ollama.options import ModelOptions
from llmrun.api.schema import Body, Ignored, Refused, wrong


class Named(Body):
    """A body that names a model, by either of Ollama's two words for it."""

    model: Annotated[str | None, Field(min_length=1, description="required: the model's name")] = None
    name: Annotated[str | None, Field(min_length=1, description="the older word for `model`")] = None

    @property
    def named(self) -> str:
        return self.model or self.name or ""

    @model_validator(mode="after")
    def _one_name(self) -> Named:
        if not self.named:
            raise wrong("is missing", "model")
        if self.model and self.name and self.model != self.name:
            raise wrong("is not the same as model: send one", "name")
        return self


class ShowBody(Named):
    verbose: Annotated[bool | None, Field(description="adds `tensors`, and arrays up to 1024 long")] = None
    system: Annotated[object, Refused("a model with another system prompt", unless=("",))] = None
    template: Annotated[object, Refused("a model with another template", unless=("",))] = None
    options: Annotated[object, Refused("a model with other options", unless=({},))] = None


class PullBody(Named):
    stream: Annotated[bool | None, Field(description="lines of progress; on unless false")] = None
    insecure: Annotated[object, Refused("a download that anyone could change", unless=(False,))] = None
    username: Annotated[object, Ignored("no source takes a name")] = None
    password: Annotated[object, Ignored("no source takes a password")] = None


class SampleMessage(Body):
    role: Annotated[Literal["system", "user", "assistant"], Field(description="whose turn")]
    content: Annotated[str | None, Field(description="none is the same as empty")] = None
    images: Annotated[object, Refused("image input", unless=([],))] = None
    thinking: Annotated[object, Refused("thinking in a kept turn", unless=("",))] = None
    tool_calls: Annotated[object, Refused("calls in a kept turn", unless=([],))] = None
    tool_name: Annotated[object, Refused("a tool's kept turn")] = None


class CreateBody(Named):
    from_: Annotated[
        str | None,
        Field(alias="from", min_length=1, description="what it is made of: a name or a reference"),
    ] = None
    files: Annotated[
        dict[str, str] | None,
        Field(description="or: the name of one GGUF file → the digest of its blob"),
    ] = None
    modelfile: Annotated[
        str | None, Field(min_length=1, description="or: a whole Modelfile, in place of all fields below")
    ] = None
    template: Annotated[str | None, JinjaOrGo, Field(description="its chat template")] = None
    system: Annotated[str | None, Field(description="its system prompt; empty: none")] = None
    parameters: Annotated[ModelOptions | None, Field(description="its options")] = None
    messages: Annotated[
        list[SampleMessage] | None, Field(description="turns that every conversation starts with")
    ] = None
    license: Annotated[str | list[str] | None, Field(description="a text or several")] = None
    stream: Annotated[bool | None, Field(description="lines of progress; on unless false")] = None
    adapters: Annotated[
        dict[str, str] | None,
        Field(description="LoRA adapters over it: the name of a GGUF file → the digest of its blob"),
    ] = None
    quantize: Annotated[
        str | None,
        Field(description="a number type for its weights: `q8_0`, `q4_K_M`, …; not from a smaller one"),
    ] = None
    path: Annotated[object, Refused("a Modelfile on the daemon's disk")] = None

    @model_validator(mode="after")
    def _made_of_one_thing(self) -> CreateBody:
        ways = {"from": self.from_, "files": self.files, "modelfile": self.modelfile}
        first, *others = [name for name, value in ways.items() if value] or [""]
        if not first:
            raise wrong("is missing", "from", hint="name a model, or send files or a modelfile")
        if others:
            raise wrong(f"is not allowed beside {first}", others[0])
        if self.files and len(self.files) > 1:
            raise wrong("should name one file: parts and projectors are not supported yet", "files")
        for name in ("template", "system", "parameters", "messages", "license", "adapters"):
            if self.modelfile and getattr(self, name):
                raise wrong("is not allowed beside modelfile", name)
        return self


class DeleteBody(Named):
    """A model to forget."""


class CopyBody(Body):
    source: Annotated[str, Field(min_length=1, description="a model's name")]
    destination: Annotated[str, Field(min_length=1, description="its further name")]
