"""The bodies of the routes that show, fetch and manage models."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

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


class DeleteBody(Named):
    """A model to forget."""


class CopyBody(Body):
    source: Annotated[str, Field(min_length=1, description="a model's name")]
    destination: Annotated[str, Field(min_length=1, description="its further name")]
