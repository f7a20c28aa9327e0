"""What llmrun depends on, held against the list that somebody looked at: scripts/dependencies.txt.

In: pyproject.toml, the packages installed in `.venv`, the list. Out: nothing and exit code 0, or a line for
each thing that is not as it should be and exit code 1. `--write` takes what is installed into the list.

Needs no network. It proves that every range has both ends, that what is installed lies in it, that no
package came in unseen through another one, that each licence is one that MIT software may build on, and that
the default model is named with its digest. It does not know of vulnerabilities: for that the names would
have to be sent to a service that lists them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "scripts" / "dependencies.txt"
MODEL = ROOT / "modelfiles" / "smollm2@135m.modelfile"
HEAD = (
    "# What llmrun needs to run, whatever brings it in, and under which licence. scripts/audit.py compares.\n"
)
# Permissive ones, and MPL, which asks for nothing of those who only import.
GOOD = ("MIT", "BSD", "0BSD", "Apache", "ISC", "PSF", "Python", "MPL", "Zlib", "CC0", "Unlicense")


def declared(part: str) -> Iterator[Requirement]:
    """The requirements that a list of pyproject.toml holds; read as text, for Python 3.10 has no TOML."""
    body = re.search(rf"^{part} = \[(.*?)\]\n", (ROOT / "pyproject.toml").read_text("utf-8"), re.M | re.S)
    assert body is not None, part
    for quoted in re.findall(r'^\s*"(.+)",$|^"(.+)"$', body[1], re.M):
        yield Requirement("".join(quoted))


def bounds(requirement: Requirement) -> str | None:
    """What is wrong with a requirement's range."""
    kinds = {each.operator for each in requirement.specifier}
    if not (kinds & {"==", "<", "<="} and kinds & {"==", ">=", ">"}):
        return f"{requirement} has no lower and upper bound"
    if requirement.marker and not requirement.marker.evaluate():
        return None
    found = metadata.version(requirement.name)
    return None if requirement.specifier.contains(found) else f"{requirement}, but {found} is installed"


def closure() -> dict[str, str]:
    """Every package that llmrun needs at run time, by its name, and what it is needed by."""
    found: dict[str, str] = {}
    waiting = [(each, "llmrun") for each in declared("dependencies")]
    while waiting:
        requirement, by = waiting.pop()
        extras = requirement.extras or {""}
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        name = canonicalize_name(requirement.name)
        if name in found and extras == {""}:
            continue
        found.setdefault(name, by)
        for text in metadata.requires(name) or ():
            inner = Requirement(text)
            if inner.marker is None or any(inner.marker.evaluate({"extra": extra}) for extra in extras):
                inner.marker = None
                waiting.append((inner, name))
    return found


def licence(name: str) -> str:
    """What a package says of its licence: the expression, else the classifier, else its own words."""
    told = metadata.metadata(name)
    if "License-Expression" in told:
        return told["License-Expression"]
    classified = [each for each in told.get_all("Classifier") or () if each.startswith("License ::")]
    if classified:
        return " OR ".join(each.rpartition(" :: ")[2] for each in classified)
    return told["License"].strip().partition("\n")[0] if "License" in told else ""


def listed() -> dict[str, str]:
    lines = LIST.read_text("utf-8").splitlines() if LIST.exists() else []
    return {name: rest for name, _, rest in (line.partition("  ") for line in lines if line[:1] != "#")}


def faults() -> Iterator[str]:
    """All that is not as it should be."""
    for part in ("dependencies", "plot", "dev"):
        yield from filter(None, map(bounds, declared(part)))
    known = listed()
    for name, by in sorted(closure().items()):
        says = licence(name)
        if name not in known:
            yield f"{name} ({says}) is new, through {by}: look at it, then scripts/audit.py --write"
        if not any(good in says for good in GOOD) or re.search(r"(?<!L)GPL", says):
            yield f"{name} has the licence {says!r}, which nobody has allowed"
    if not re.search(r"^SHA256 [0-9a-f]{64}$", MODEL.read_text("utf-8"), re.M):
        yield f"{MODEL.name} does not say the SHA-256 of the default model"


def main() -> int:
    if "--write" in sys.argv[1:]:
        every = {**listed(), **{name: licence(name) for name in closure()}}  # others need more elsewhere
        LIST.write_text(HEAD + "".join(f"{name}  {says}\n" for name, says in sorted(every.items())), "utf-8")
    found = list(faults())
    for fault in found:
        print(fault, file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
