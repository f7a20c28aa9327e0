"""The models llmrun knows by name: the folder `modelfiles/`, one Modelfile each.

`modelfiles/NAME@TAG.modelfile` describes the model `NAME:TAG`. `NAME` alone means the tag whose file says
DEFAULT, or the only one. The folder is read when asked, not at import; it never changes while we run.
"""

from __future__ import annotations

import difflib
import itertools
import operator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from llmrun.errors import INTERNAL, LlmrunError
from llmrun.store.modelfile import Modelfile, parse_modelfile
from llmrun.store.reference import NameRef

_SUFFIX = ".modelfile"


def catalogue_folder() -> Path:
    """Where the entries are: inside the package once it is installed, beside it in a checkout."""
    package = Path(__file__).parents[1]
    for folder in (package / "modelfiles", package.parent / "modelfiles"):
        if folder.is_dir():
            return folder
    raise LlmrunError(INTERNAL, f"the model catalogue is missing from {package}", hint="install llmrun again")


@dataclass(frozen=True)
class Entry:
    """The catalogue's model `name` (with its tag)."""

    name: str
    modelfile: Modelfile


class Catalogue:
    """Read-only; safe on any thread."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    @cached_property
    def _files(self) -> dict[str, Path]:
        folder = self._folder or catalogue_folder()
        files = sorted(folder.glob(f"*@*{_SUFFIX}"))
        return {path.name.removesuffix(_SUFFIX).replace("@", ":"): path for path in files}

    def names(self) -> list[str]:
        """Every name with its tag, sorted."""
        return list(self._files)

    def find(self, reference: NameRef) -> Entry | None:
        """The entry that `reference` means, its default tag where it names none."""
        if reference.tag:
            return self._entry(str(reference))
        entries = [
            e for name in self._files if name.startswith(f"{reference.name}:") and (e := self._entry(name))
        ]
        chosen = entries if len(entries) == 1 else [entry for entry in entries if entry.modelfile.default]
        return chosen[0] if chosen else None

    def _entry(self, name: str) -> Entry | None:
        path = self._files.get(name)
        return Entry(name, parse_modelfile(path.read_text("utf-8"), str(path))) if path else None


def nearest(name: str, known: list[str], count: int = 3) -> list[str]:
    """Up to `count` of `known` that look like `name`, likeliest first. Compares with and without the tag."""
    by_stem: dict[str, list[str]] = {}
    for full in known:
        by_stem.setdefault(full.partition(":")[0], []).append(full)
    word = name.lower()

    def likeness(other: str) -> tuple[float, int]:
        """Of those that are as much alike, the one that begins alike: 135m rather than 360m for 136m."""
        ratio = difflib.SequenceMatcher(None, other, word).ratio()
        return ratio, sum(itertools.takewhile(bool, map(operator.eq, word, other)))

    found = sorted(difflib.get_close_matches(word, known, n=count, cutoff=0.6), key=likeness, reverse=True)
    for stem in difflib.get_close_matches(word.partition(":")[0], by_stem, n=count, cutoff=0.6):
        found += by_stem[stem]
    return list(dict.fromkeys(found))[:count]
