"""Fills the generated parts of the Markdown files, or with `--check` says what is wrong in them.

A generated part lies between `<!-- generated: NAME -->` and `<!-- end -->`; NAME is a key of `PARTS`.
Checked beside them: relative links and their anchors lead somewhere, every `llmrun COMMAND --option` in a
code span or block exists, and the llama-cpp-python to install is the pinned one.

Run it with `.venv/bin/python scripts/docs.py [--check]`.
"""

from __future__ import annotations

import inspect
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import typer

from llmrun.access.gate import Gate
from llmrun.api import fields
from llmrun.api.app import create_app
from llmrun.api.metrics import Metrics
from llmrun.cli.groups import ALIASES, EVERYWHERE
from llmrun.cli.help import spelt
from llmrun.cli.main import app
from llmrun.cli.repl.slash import COMMANDS
from llmrun.config import SETTINGS, Paths, Settings
from llmrun.daemon.service import Service
from llmrun.errors import KINDS
from llmrun.store import Store, parse_modelfile
from llmrun.store.catalogue import catalogue_folder

ROOT = Path(__file__).resolve().parent.parent
GENERATED = re.compile(r"(<!-- generated: ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
FENCE = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)
CODE_SPAN = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(r"(?<![\w/:.-])(?:\.venv/bin/)?llmrun +(--\w[\w-]*|[a-z]+)((?:[^\n|`#<>;)]|<[A-Z])*)")
SHOWN = ("run", "chat", "map", "pull", "serve")  # the commands whose options the README has
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


def documents() -> list[Path]:
    """The project's own Markdown files."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def table(headings: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; bars inside cells are escaped."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


@cache
def root_command() -> Any:
    return typer.main.get_command(app)


@cache
def subcommands(command: Any) -> dict[str, Any]:
    """The commands of a group by name, in its order; none for a plain command. Made once: Typer takes a
    hundredth of a second for each."""
    if not hasattr(command, "list_commands"):
        return {}
    return {name: command.get_command(None, name) for name in command.list_commands(None)}


def first_sentence(command: Any) -> str:
    return str(command.help).strip().split("\n\n")[0].replace("\n", " ").strip()


def commands_part() -> str:
    rows = []
    for name, command in subcommands(root_command()).items():
        inner = subcommands(command) or {"": command}
        alias = "".join(f", `{short}`" for short, full in ALIASES.items() if full == name)
        rows += [[f"`{f'{name} {sub}'.strip()}`{alias}", first_sentence(leaf)] for sub, leaf in inner.items()]
    return table(["command", "does"], rows)


def leaves() -> Iterator[tuple[str, Any]]:
    """Every command with its whole name, those inside groups one by one."""
    for name, command in subcommands(root_command()).items():
        inner = subcommands(command)
        if not inner:
            yield name, command
        yield from ((f"{name} {sub}", leaf) for sub, leaf in inner.items())


def cli_part() -> str:
    """A section for every command: what it does, its examples, its arguments and options."""
    return "\n".join(section(name, command) for name, command in leaves())


def section(name: str, command: Any) -> str:
    about, _, examples = str(command.help).partition("\b\n")
    shown = inspect.cleandoc("\n".join(examples.strip("\n").split("\n")[1:]))
    rows = [[f"`{spelt(words)}`", about] for words, about in records(name, command)]
    options = f"\n{table(['argument or option', 'what it is'], rows)}" if rows else ""
    return f"## `{name}`\n\n{inspect.cleandoc(about).strip()}\n\n```sh\n{shown}\n```\n{options}"


def options_part() -> str:
    """The options of the commands that one types most, each once, with the commands that take it."""
    takers: dict[tuple[str, str], list[str]] = {}
    for name, command in subcommands(root_command()).items():
        if name in SHOWN:
            for words, about in records(name, command):
                if words.startswith("-"):
                    takers.setdefault((spelt(words), about), []).append(f"`{name}`")
    rows = [[f"`{option}`", about, " ".join(of)] for (option, about), of in takers.items()]
    return table(["option", "what it is", "of"], rows)


def records(name: str, command: Any) -> Iterator[tuple[str, str]]:
    """What a command's own help says of each argument and option that is not every command's."""
    context = typer.Context(command, info_name=name)
    for parameter in command.params:
        if parameter.name not in {*EVERYWHERE, "help"} and (record := parameter.get_help_record(context)):
            yield record[0], record[1].replace("  [", " [")


def default_of(name: str) -> str:
    """A setting's default, as one would write it."""
    value: Any = SETTINGS[name].default
    if name == "host":
        return f"`{value[0]}:{value[1]}`"
    if name == "keep_alive":
        return f"`{value / 60:.0f}m`"
    if value is None:
        return "`auto`" if SETTINGS[name].metadata["form"].startswith("auto") else "none"
    if isinstance(value, bool):
        return f"`{int(value)}`"
    return f"`{value}`" if value != () else "none"


def settings_part() -> str:
    rows = [
        [
            f"`LLMRUN_{name.upper()}`",
            f"`{name}`",
            default_of(name),
            setting.metadata["form"],
            setting.metadata["about"],
        ]
        for name, setting in SETTINGS.items()
    ]
    return table(["environment", "config.toml", "default", "form", "what it is"], rows)


def errors_part() -> str:
    rows = [[f"`{kind.code}`", str(kind.status), str(kind.exit), kind.hint] for kind in KINDS.values()]
    return table(["code", "HTTP status", "exit code", "usual mend"], rows)


def models_part() -> str:
    rows = []
    for path in sorted(catalogue_folder().iterdir()):
        text = path.read_text("utf-8")
        about = " ".join(
            line[1:].strip() for line in itertools.takewhile(lambda li: li[:1] == "#", text.split("\n"))
        )
        entry = parse_modelfile(text, path.name)
        name = path.stem.replace("@", ":")
        rows.append([f"`{name}`", about, entry.license, f"`{entry.sources[0]}`"])
    return table(["name", "what it is", "licence", "source"], rows)


def routes_part() -> str:
    service = Service(Store(Paths.find()), Settings())
    paths = create_app(service, Settings(), on_shutdown=lambda: None).openapi()["paths"]
    rows = [
        [f"`{method.upper()} {path}`", " ".join(operation["description"].split("\n\n")[0].split())]
        for path, methods in paths.items()
        for method, operation in methods.items()
    ]
    return table(["route", "what it gives"], rows)


def metrics_part() -> str:
    rows = []
    for family in Metrics(Service(Store(Paths.find()), Settings()), Gate(None)).families():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        rows.append([f"`{name}`", family.type, family.documentation])
    return table(["metric", "kind", "what it is"], rows)


def slash_part() -> str:
    """The commands of the chat; those that are refused by name have no description."""
    return table(
        ["command", "does"], [[f"`{slash.usage}`", slash.about] for slash in COMMANDS.values() if slash.about]
    )


def figures_part(suite: str) -> str:
    """The kept figures of a suite of benchmarks."""
    sys.path.append(str(ROOT / "scripts" / "bench"))
    import results

    return results.markdown(ROOT / "docs" / "performance.json", suite)


def workloads_part() -> str:
    """What each workload of the benchmarks does."""
    sys.path.append(str(ROOT / "scripts" / "bench"))
    from lifecycle import LIFECYCLE
    from workloads import WORKLOADS

    works = {**WORKLOADS, **LIFECYCLE}
    return table(
        ["workload", "what is asked"],
        [[f"`{name}`", inspect.getdoc(work) or ""] for name, work in works.items()],
    )


PARTS: dict[str, Callable[[], str]] = {
    "commands": commands_part,
    "cli": cli_part,
    "options": options_part,
    "settings": settings_part,
    "errors": errors_part,
    "models": models_part,
    "routes": routes_part,
    "fields": fields.markdown,
    "metrics": metrics_part,
    "slash": slash_part,
    "workloads": workloads_part,
    **{f"figures-{suite}": partial(figures_part, suite) for suite in ("small", "copying", "billion")},
}


def filled(text: str) -> str:
    """`text` with every generated part made anew; KeyError for an unknown name."""
    return GENERATED.sub(lambda m: f"{m[1]}{PARTS[m[2]]()}{m[4]}", text)


def code_in(text: str) -> Iterator[str]:
    """The fenced blocks and code spans of a document."""
    yield from FENCE.findall(text)
    yield from CODE_SPAN.findall(FENCE.sub("", text))


def unknown_words(first: str, rest: str) -> Iterator[str]:
    """Commands and options in `llmrun FIRST REST` that the command line does not have."""
    command, words = root_command(), [first, *rest.split()]
    if first == "help":
        return
    while words and (inner := subcommands(command)) and not words[0].startswith("-"):
        name = words.pop(0)
        found = inner.get(name) or command.get_command(None, name)  # an alias is not listed
        if found is None:
            yield f"llmrun {name}"
            return
        command = found
    known = {
        option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
    }
    for word in words:
        option = word.partition("=")[0]
        if re.fullmatch(r"--\w[\w-]*", option) and option not in known | {"--help"}:
            yield f"llmrun … {command.name} {option}"


def anchors(text: str) -> set[str]:
    """The anchors of a document's headings, as code forges make them."""
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(FENCE.sub("", text)))
    return {heading.strip().replace(" ", "-") for heading in kept}


def broken_links(path: Path, text: str) -> Iterator[str]:
    for target in LINK.findall(FENCE.sub("", text)):
        name, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        other = (path.parent / name) if name else path
        if not other.exists():
            yield f"links to {target}, which is not there"
        elif anchor and anchor not in anchors(other.read_text("utf-8")):
            yield f"links to {target}, which has no such heading"


def problems(path: Path) -> Iterator[str]:
    """What is wrong in one document, a line each."""
    text = path.read_text("utf-8")
    if filled(text) != text:
        yield "has generated parts that are out of date: .venv/bin/python scripts/docs.py"
    yield from broken_links(path, text)
    for version in re.findall(r"llama-cpp-python==([\d.]+)", text):
        if f'"llama-cpp-python=={version}"' not in (ROOT / "pyproject.toml").read_text("utf-8"):
            yield f"installs llama-cpp-python {version}, which is not what pyproject.toml pins"
    for code in code_in(text):
        for first, rest in COMMAND.findall(code):
            yield from (f"names {words}, which does not exist" for words in unknown_words(first, rest))


def main() -> int:
    if "--check" in sys.argv[1:]:
        wrong = [f"{path.relative_to(ROOT)} {problem}" for path in documents() for problem in problems(path)]
        print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
        return 1 if wrong else 0
    for path in documents():
        text = path.read_text("utf-8")
        if (new := filled(text)) != text:
            path.write_text(new, "utf-8")
            print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
