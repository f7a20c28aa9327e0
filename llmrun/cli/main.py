"""The entry point and the boundary where an error becomes one line on stderr and an exit code.

Imported at every start, so it loads Typer and nothing heavy; commands are imported when typed.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from llmrun.cli.completion import HELP, VARIABLE, mend_scripts, offer
from llmrun.cli.groups import LazyGroup
from llmrun.cli.session import Session, session_of
from llmrun.errors import DISK, INTERNAL, USAGE, LlmrunError

PROGRAM = "llmrun"
INTERRUPTED = 130
CLOSED_PIPE = 141  # what a shell reports for a program that SIGPIPE ended

# Typer's usage errors, by its one public member: newer releases carry them in a private package.
_UsageError: Any = typer.BadParameter.__mro__[1]

# How Typer says what a value must be, and how we do.
_VALUES = {
    r"Input should be a valid number.*": "it takes a number",
    r"Input should be a valid integer.*": "it takes a whole number",
    r"Input should be greater than or equal to (\S+)": r"it is \1 at least",
    r"Input should be less than or equal to (\S+)": r"it is \1 at most",
    r"Value error, ": "",
}

app = typer.Typer(
    cls=LazyGroup,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=True,
)


def _set_debug(ctx: typer.Context, value: bool) -> None:
    if value:
        from llmrun import log

        session = session_of(ctx)
        session.debug = True
        log.setup("DEBUG", session.settings.log_format)


def _set_quiet(ctx: typer.Context, value: bool) -> None:
    if value:
        session_of(ctx).out.quiet = True


def _set_offline(_ctx: typer.Context, value: bool) -> None:
    if value:
        os.environ["LLMRUN_OFFLINE"] = "1"  # read wherever settings are, and by a daemon that is started


def _show_version(ctx: typer.Context, value: bool) -> None:
    if value:
        from llmrun.cli.version import version_line

        session_of(ctx).out.result(version_line())
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(  # the four flags act in their callbacks, so the function has no use for them
    ctx: typer.Context,
    version: Annotated[  # noqa: ARG001 (see above)
        bool,
        typer.Option(
            "--version",
            help="Show the version, llama.cpp's, and the backend.",
            callback=_show_version,
            is_eager=True,
            expose_value=False,
        ),
    ] = False,
    debug: Annotated[  # noqa: ARG001 (see above)
        bool,
        typer.Option(
            "--debug",
            help="Show what is asked of the daemon, and the traceback of an error.",
            callback=_set_debug,
            expose_value=False,
        ),
    ] = False,
    quiet: Annotated[  # noqa: ARG001 (see above)
        bool,
        typer.Option("--quiet", help="Results and errors only.", callback=_set_quiet, expose_value=False),
    ] = False,
    offline: Annotated[  # noqa: ARG001 (see above)
        bool,
        typer.Option(
            "--offline", help="Fetch nothing from anywhere.", callback=_set_offline, expose_value=False
        ),
    ] = False,
) -> None:
    """Run quantised language models on your own machine.

    \b
    Examples:
      llmrun run smollm2:135m "Why is the sky blue?"
      cat letter.txt | llmrun run smollm2:135m "Answer this letter:"
      llmrun chat
      llmrun serve

    llmrun help COMMAND, or llmrun COMMAND --help, shows a command's options and examples.
    """
    if ctx.invoked_subcommand is None:
        session_of(ctx).out.result(ctx.get_help())


def usage_error(error: Any) -> LlmrunError:
    """One of Typer's usage errors in our words: what was wrong, and where the right way is written."""
    message = error.format_message().rstrip(".")
    for theirs, ours in _VALUES.items():
        message = re.sub(theirs, ours, message)
    near = getattr(error, "possibilities", None)
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else PROGRAM
    if near:
        message = error.message.rstrip(".")
        hint = f"did you mean {' or '.join(sorted(near))}?"
    else:
        hint = f"see: {command} --help"
    return LlmrunError(USAGE, message[:1].lower() + message[1:], hint=hint)


def as_llmrun_error(error: Exception) -> LlmrunError:
    """The error that a person is shown for `error`, whatever it is."""
    if isinstance(error, LlmrunError):
        return error
    if isinstance(error, _UsageError):
        return usage_error(error)
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return LlmrunError(DISK, f"{where}{error.strerror}", hint="")
    return LlmrunError(INTERNAL, f"{type(error).__name__}: {error}", hint="please report it, with --debug")


def run_command(args: Sequence[str], session: Session) -> int:
    """Run one command line; its exit code. Errors come out as exceptions."""
    command = typer.main.get_command(app)
    if args and args[0] == HELP:  # as git and Ollama have it
        args = [*args[1:], "--help"]
    if VARIABLE in os.environ:
        offer(command, args, PROGRAM)
    mend_scripts()
    try:
        width = max(
            20, min(session.out.width or shutil.get_terminal_size().columns, 80) - 2
        )  # Typer's own is 50 at least
        with command.make_context(PROGRAM, list(args), obj=session, terminal_width=width) as ctx:
            command.invoke(ctx)
    except typer.Exit as exit_:
        return exit_.exit_code
    session.out.close()
    return 0


def main(args: Sequence[str]) -> int:
    """Run one command line and report what went wrong; the process's exit code."""
    session = Session()
    try:
        return run_command(args, session)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        _let_go_of_streams()
        return CLOSED_PIPE
    except Exception as error:
        try:
            if session.debug:
                traceback.print_exc()
            known = as_llmrun_error(error)
            session.out.error(known)
        except BrokenPipeError:
            _let_go_of_streams()
            return CLOSED_PIPE
        return known.kind.exit


def _let_go_of_streams() -> None:
    """The reader is gone: nothing is left to flush when the interpreter ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            os.dup2(nowhere, stream.fileno())


def entry() -> None:
    """The `llmrun` script."""
    sys.exit(main(sys.argv[1:]))
