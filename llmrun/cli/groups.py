"""The table of commands and the group that imports a command's module only when it is wanted."""

from __future__ import annotations

import difflib
import importlib
from typing import Any

import typer
from typer.core import TyperGroup

from llmrun.cli.help import fitted, write_options, write_rows
from llmrun.cli.session import session_of
from llmrun.errors import USAGE, LlmrunError

# section -> command -> module in llmrun.cli.commands
SECTIONS: dict[str, dict[str, str]] = {
    "Talk": {"run": "run", "chat": "chat", "map": "map", "embed": "embed"},
    "Models": {
        "pull": "pull",
        "list": "list",
        "show": "show",
        "fit": "fit",
        "create": "create",
        "quantize": "quantize",
        "import": "import_",
        "cp": "cp",
        "rm": "rm",
        "verify": "verify",
        "prune": "prune",
    },
    "Daemon": {
        "serve": "serve",
        "ps": "ps",
        "stop": "stop",
        "logs": "logs",
        "service": "service",
        "keys": "keys",
    },
    "Look closer": {"explain": "explain", "bench": "bench"},
    "Help": {
        "doctor": "doctor",
        "config": "config",
        "template": "template",
        "uninstall": "uninstall",
    },
}
ALIASES = {"ls": "list"}
# What other programs call them, where the spelling alone would not lead to ours.
_ELSEWHERE = {
    **dict.fromkeys(("delete", "remove"), ("rm", "revoke")),
    **dict.fromkeys(("download", "install", "fetch", "get"), ("pull", "create")),
    **dict.fromkeys(("kill", "unload", "down"), ("stop",)),
    **dict.fromkeys(("start", "server", "up"), ("serve",)),
    **dict.fromkeys(("generate", "ask", "prompt"), ("run",)),
    **{"copy": ("cp",), "alias": ("cp",), "inspect": ("show",), "info": ("show",), "models": ("list",)},
    **{"version": ("--version",), "completion": ("--install-completion",), "status": ("ps",)},
}
EVERYWHERE = ("debug", "quiet", "offline")  # the names of the flags that every command takes
_WHOLE = 1000  # characters of a command's first sentence: more than any has
_MODULES = {name: module for section in SECTIONS.values() for name, module in section.items()}


def load_command(name: str) -> Any:
    """The Typer command called `name`; KeyError where there is none."""
    module = importlib.import_module(f"llmrun.cli.commands.{_MODULES[ALIASES.get(name, name)]}")
    command = typer.main.get_command(module.app)
    command.name = name
    return command


class Group(TyperGroup):
    """A command with commands, which answers a wrong name in our words. Flags for every command are
    understood before and after a command's name."""

    def get_help(self, ctx: Any) -> str:
        return fitted(super().get_help(ctx), session_of(ctx).out.width)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        return None if command is None else self._with_flags(command)

    def _with_flags(self, command: Any) -> Any:
        there = {parameter.name for parameter in command.params}
        command.params += [p for p in self.params if p.name in EVERYWHERE and p.name not in there]
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            near = self._nearest(ctx, args[0])
            hint = f"did you mean {near!r}?" if near else f"see: {ctx.command_path} --help"
            raise LlmrunError(USAGE, f"there is no command {args[0]!r}", hint=hint)
        return super().resolve_command(ctx, args)

    def _nearest(self, ctx: Any, word: str) -> str | None:
        """What somebody may have meant: the same under our name, or what is spelt nearly so."""
        known = self.list_commands(ctx)
        flags = [flag for parameter in self.params for flag in parameter.opts]
        ours = [name for name in _ELSEWHERE.get(word, ()) if name in (*known, *flags)]
        return next(iter(ours or difflib.get_close_matches(word, known, n=1)), None)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        write_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        write_rows(formatter, "Commands", [self._row(ctx, name, name) for name in self.list_commands(ctx)])

    def _row(self, ctx: Any, name: str, title: str) -> tuple[str, str]:
        return title, self.get_command(ctx, name).get_short_help_str(_WHOLE)


class LazyGroup(Group):
    """`llmrun`: its commands come from the table above."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 (click passes it)
        return list(_MODULES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 (click passes it)
        try:
            return self._with_flags(load_command(cmd_name))
        except KeyError:
            return None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        aliases = {name: alias for alias, name in ALIASES.items()}
        for section, names in SECTIONS.items():
            titles = {name: f"{name}, {aliases[name]}" if name in aliases else name for name in names}
            write_rows(formatter, section, [self._row(ctx, name, title) for name, title in titles.items()])
