"""The borders of docs/architecture.md, proved by reading every module's imports."""

from __future__ import annotations

import ast
import importlib.metadata
import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "llmrun").rglob("*.py"))

BASE = {"types", "errors", "hosts", "huge_pages", "config", "log"}

# What each package may import of llmrun beside itself: a package or one module of it.
MAY_IMPORT = {
    "types": set(),
    "errors": {"types"},
    "hosts": set(),
    "huge_pages": set(),
    "config": {"types", "errors", "hosts"},
    "log": set(),
    "store": BASE,
    "access": BASE | {"store"},
    "llama": BASE | {"store"},
    "engine": BASE | {"store", "llama"},
    "chat": BASE | {"store", "llama", "engine"},
    "runner": BASE | {"store", "llama", "engine", "chat"},
    "daemon": BASE | {"store", "runner.frames"},
    "api": BASE | {"store", "access", "daemon"},
    "asking": BASE,
    "reply": BASE,
    "embedded": BASE | {"asking", "reply", "store", "runner", "daemon.prepare"},
    "client": BASE | {"asking", "reply", "store", "daemon"},
    "cli": BASE | {"store", "access", "daemon", "client", "api", "chat.template", "chat.syntax"},
    "__main__": {"cli"},
    "__init__": {"embedded", "client"},
}

# Libraries that mark a layer: no other package may import them.
HOME_OF = {
    "llama_cpp": {"llama"},
    "fastapi": {"api"},
    "starlette": {"api"},
    "uvicorn": {"api"},
    "pydantic": {"api"},
    "prometheus_client": {"api"},
    "jinja2": {"chat"},
    "typer": {"cli"},
    "rich": {"cli"},
    "prompt_toolkit": {"cli"},
    "matplotlib": {"cli"},
}

HEAVY = ("llama_cpp", "fastapi", "pydantic", "numpy", "huggingface_hub", "httpx", "matplotlib")
MAX_LINES = 350


@dataclass(frozen=True)
class Import:
    """One import of `target` (a dotted module name) in `file`; `lazy`: not when
    the module is imported (inside a function, or for types only)."""

    file: Path
    line: int
    target: str
    lazy: bool

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line} imports {self.target}"


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path) for path in SOURCES}


def targets(node: ast.AST, path: Path) -> Iterator[str]:
    """The modules that an import statement, or an `import_module` of a literal, names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        package = (
            module_of(path).split(".") if path.name == "__init__.py" else module_of(path).split(".")[:-1]
        )
        above = package[: len(package) - node.level + 1] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        inner = (f"{base}.{alias.name}" for alias in node.names)
        yield from dict.fromkeys(name if name in MODULES else base for name in inner)
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
        yield from (
            arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
        )


def is_for_types(node: ast.AST) -> bool:
    """Whether this is `if TYPE_CHECKING:`, whose imports never run."""
    return isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"


@cache
def imports(path: Path) -> tuple[Import, ...]:
    found = []

    def visit(node: ast.AST, lazy: bool) -> None:
        found.extend(Import(path, getattr(node, "lineno", 0), target, lazy) for target in targets(node, path))
        inside = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or is_for_types(node)
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(ast.parse(path.read_text("utf-8"), str(path)), lazy=False)
    return tuple(found)


def layer(path: Path) -> str:
    """The package right under llmrun (`store`), or the name of a module beside them (`types`)."""
    return path.relative_to(ROOT / "llmrun").with_suffix("").parts[0]


def may_import(path: Path) -> set[str]:
    return MAY_IMPORT.get(layer(path), set())


def is_allowed(path: Path, target: str) -> bool:
    _, _, inner = target.partition(".")
    package = inner.partition(".")[0]
    allowed = may_import(path)
    return package in {"", layer(path)} | allowed or any(
        inner == module or inner.startswith(f"{module}.") for module in allowed
    )


def test_imports_within_llmrun_point_downwards() -> None:
    wrong = [
        f"{found}; {layer(path)} may import: {', '.join(sorted(may_import(path))) or 'nothing'}"
        for path in SOURCES
        for found in imports(path)
        if found.target.partition(".")[0] == "llmrun" and not is_allowed(path, found.target)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("file", "target", "allowed"),
    [
        ("engine/x.py", "llmrun.llama.model", True),
        ("engine/x.py", "llmrun.chat", False),
        ("daemon/x.py", "llmrun.runner.frames", True),
        ("daemon/x.py", "llmrun.runner.main", False),
        ("cli/commands/x.py", "llmrun.chat.template", True),
        ("cli/commands/x.py", "llmrun.chat.syntax.form", True),
        ("cli/commands/x.py", "llmrun.chat", False),
        ("store/x.py", "llmrun", True),
        ("types.py", "llmrun.errors", False),
    ],
)
def test_is_allowed_known_borders(file: str, target: str, allowed: bool) -> None:
    assert is_allowed(ROOT / "llmrun" / file, target) is allowed


def test_every_package_has_a_place_in_the_layers() -> None:
    assert {layer(path) for path in SOURCES} <= set(MAY_IMPORT)


def test_modules_import_each_other_without_a_cycle() -> None:
    graph = {
        module_of(path): {
            found.target
            for found in imports(path)
            if found.target in MODULES and not found.lazy and found.target != module_of(path)
        }
        for path in SOURCES
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("modules import each other in a circle: " + " <- ".join(error.args[1]))


def test_libraries_that_mark_a_layer_stay_in_it() -> None:
    wrong = [
        f"{found}; only llmrun/{', '.join(HOME_OF[library])} may"
        for path in SOURCES
        for found in imports(path)
        if layer(path) not in HOME_OF.get(library := found.target.partition(".")[0], {layer(path)})
    ]
    assert not wrong, "\n".join(wrong)


@cache
def declared() -> set[str]:
    """The distributions that pyproject.toml names as dependencies, also of extras that users install,
    normalised."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = (texts for name, texts in project["optional-dependencies"].items() if name != "dev")
    texts = itertools.chain(project["dependencies"], *extras)
    return {normal(match[0]) for text in texts if (match := re.match(r"[\w.-]+", text))}


def normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


@cache
def distributions_of(module: str) -> set[str]:
    """The distributions that ship the top-level `module`; its own name where it is not installed."""
    return {normal(name) for name in importlib.metadata.packages_distributions().get(module, [module])}


def third_party() -> Iterator[tuple[Import, str]]:
    for path in SOURCES:
        for found in imports(path):
            name = found.target.partition(".")[0]
            if name != "llmrun" and name not in sys.stdlib_module_names | {"tomllib"}:
                yield found, name


def test_third_party_imports_are_declared_dependencies() -> None:
    wrong = [
        f"{found}, which no dependency in pyproject.toml ships"
        for found, name in third_party()
        if not distributions_of(name) & declared()
    ]
    assert not wrong, "\n".join(wrong)


def test_declared_dependencies_are_imported() -> None:
    used = {distribution for _, name in third_party() for distribution in distributions_of(name)}
    assert declared() <= used, f"pyproject.toml names what nothing imports: {sorted(declared() - used)}"


def test_command_line_starts_without_heavy_libraries() -> None:
    """A finder ahead of all others refuses them, so that the traceback shows who imports one."""
    program = f"""
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {HEAVY!r}:
            raise AssertionError(f"the command line imported {{name}}")

sys.meta_path.insert(0, Refuse())
import llmrun.cli.main
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_no_module_is_named_utils() -> None:
    assert not [str(path) for path in SOURCES if path.stem in {"utils", "util", "helpers", "common", "misc"}]


def test_no_module_is_too_long_to_hold_in_the_head() -> None:
    long = [
        f"{path.relative_to(ROOT)} has {count} lines, more than {MAX_LINES}"
        for path in SOURCES
        if (count := len(path.read_text("utf-8").splitlines())) > MAX_LINES
    ]
    assert not long, "\n".join(long)
