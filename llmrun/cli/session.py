"""What one run of the command line shares: where to write, where things lie, how they are set."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property

import typer

from llmrun.cli.output import Output
from llmrun.config import Paths, Settings, load_settings


@dataclass
class Session:
    """Made once by `main`, handed to every command as the Typer context's object. Paths and settings
    are read on first use, so that `--help` works beside a broken config.toml."""

    out: Output = field(default_factory=Output.standard)
    debug: bool = False

    @cached_property
    def paths(self) -> Paths:
        return Paths.find(os.environ)

    @cached_property
    def settings(self) -> Settings:
        return load_settings(self.paths, os.environ)


def session_of(ctx: typer.Context, *, as_json: bool = False) -> Session:
    """The session of the command that `ctx` belongs to; `as_json`: the command was told to print JSON."""
    session = ctx.find_root().obj
    assert isinstance(session, Session)
    if as_json:
        session.out.mode = "json"
    return session
