"""The models of this machine: found, pulled, named, removed.

Every method may be called from any thread and process at once. Reading takes no lock and works on a
read-only folder; nothing is created until something is written.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from llmrun.config import Paths
from llmrun.errors import BAD_FILE, CONFLICT, INVALID_REQUEST, UNKNOWN_MODEL, USAGE, LlmrunError
from llmrun.store.blobs import Blobs
from llmrun.store.catalogue import Catalogue, nearest
from llmrun.store.creating import derive
from llmrun.store.disk import writing
from llmrun.store.facts import read_facts
from llmrun.store.gather import Gather
from llmrun.store.manifest import Manifest, now
from llmrun.store.model import StoredModel, from_files
from llmrun.store.modelfile import Modelfile
from llmrun.store.peeking import Peek, peek_at, peek_into
from llmrun.store.preview import Preview, preview, preview_of_held
from llmrun.store.progress import Meter, PullProgress
from llmrun.store.pull import Pull, Recipe
from llmrun.store.quantizing import Quantizer, Wish, type_of
from llmrun.store.reference import (
    FileRef,
    NameRef,
    OllamaRef,
    Reference,
    RepoRef,
    parse_name,
    parse_reference,
)
from llmrun.store.shelf import Shelf
from llmrun.store.transports import offer_of
from llmrun.store.transports.https import sized
from llmrun.store.transports.local import files_of


@dataclass(frozen=True)
class Removed:
    """What `remove` did: the model's full name, the bytes freed, whether its files were left in place."""

    name: str
    freed: int
    in_place: bool


class Store:
    def __init__(self, paths: Paths) -> None:
        self._shelf = Shelf(paths.models)
        self._catalogue = Catalogue()
        self.blobs = Blobs(self._shelf)
        self._quantizer = Quantizer(paths)

    def list(self) -> list[StoredModel]:
        """Every model, by name, also those whose files vanished (`missing`)."""
        return [self._shelf.model(manifest) for manifest in self._shelf.manifests.all()]

    def resolve(self, name: str) -> StoredModel:
        """The model that `name` means: a name (the default tag where it has none), a reference it was pulled
        by, or a GGUF file on disk. INVALID_REQUEST where it can mean nothing, UNKNOWN_MODEL where it is
        not here, with the command that gets it or the nearest names."""
        reference = parse_reference(name)
        if isinstance(reference, FileRef):
            return from_files(str(reference), files_of(reference.path))
        manifest = self._find(reference)
        if manifest is None:
            raise self._unknown(name, reference)
        model = self._shelf.model(manifest)
        if model.missing:
            gone = next(path for path in model.files if not path.is_file())
            raise LlmrunError(
                UNKNOWN_MODEL,
                f"the file of {model.name} is gone: {gone}",
                hint=f"llmrun pull {model.name}, or llmrun rm {model.name}",
            )
        return model

    def can_pull(self, name: str) -> bool:
        """Whether `pull` would know where to look: a catalogue name or a reference to a remote source."""
        try:
            reference = parse_reference(name)
        except LlmrunError:
            return False
        if isinstance(reference, NameRef):
            return reference.hub is not None or self._catalogue.find(reference) is not None
        return not isinstance(reference, FileRef)

    def pull(
        self,
        reference: str,
        *,
        quant: str | None = None,
        limit_rate: int | None = None,
        on_progress: Callable[[PullProgress], None] | None = None,
    ) -> StoredModel:
        """Bring a model here and register it; blocks. Resumes what an earlier pull began, joins one that is
        under way, and fetches nothing that is here already. A model that is here and cannot have changed
        is returned as it is. `quant` chooses among those of the repository; `limit_rate`: bytes a second;
        `on_progress`: see `progress`."""
        meter = Meter(on_progress, limit_rate)
        with writing(self._shelf.models):
            recipe = self._recipe(self._parse(reference, quant), reference)
            recipe.modelfile.require_usable()
            held = self._held(recipe)
            if held and not _may_change(recipe):
                meter.note(f"{held.name} is here already")
                return self._shelf.model(held)
            try:
                manifest = Pull(self._shelf, self._catalogue, recipe, meter).run()
            except LlmrunError as error:
                if held is None:
                    raise
                meter.note(f"{error.message}; {held.name} stays as it is here")
                manifest = held
        return self._shelf.model(manifest)

    def preview(self, reference: str, *, quant: str | None = None) -> Preview:
        """What `pull` would fetch and whether there is room for it. Fetches and writes nothing."""
        recipe = self._recipe(self._parse(reference, quant), reference)
        held = self._held(recipe)
        if held and not _may_change(recipe):
            return preview_of_held(self._shelf, held)
        offer = Pull(self._shelf, self._catalogue, recipe, Meter(None)).offer()
        return preview(self._shelf, sized(offer), Gather(self._shelf, Meter(None), recipe.modelfile))

    def peek(self, name: str) -> Peek:
        """What the headers of a model say. One that is not here is read where it lies, by range requests:
        nothing is fetched or kept. The error of the first source where none can be read."""
        reference = parse_reference(name)
        if isinstance(reference, FileRef) or self._find(reference):
            return peek_at(self.resolve(name))
        recipe = self._recipe(reference, name)
        tried: list[Peek | LlmrunError] = []
        for source in recipe.modelfile.sources:
            tried.append(found := self._peeked(source, recipe, name))
            if isinstance(found, Peek):
                return found
        problem = tried[0]
        assert isinstance(problem, LlmrunError)
        raise problem

    def _peeked(self, source: Reference, recipe: Recipe, name: str) -> Peek | LlmrunError:
        try:
            return peek_into(sized(offer_of(source)), recipe.modelfile, recipe.name or name)
        except LlmrunError as error:
            return error

    def remove(self, name: str) -> Removed:
        """Forget a model, and delete its files where they are the store's and no other name uses them."""
        reference = parse_reference(name)
        if isinstance(reference, FileRef):
            raise LlmrunError(
                INVALID_REQUEST, f"{name} is a file of yours, not a stored model", hint="see llmrun list"
            )
        with writing(self._shelf.models), self._shelf.lock():
            try:
                manifest = self._find(reference)
            except LlmrunError as error:
                if error.kind is not BAD_FILE:
                    raise
                self._shelf.manifests.delete(str(reference))
                return Removed(str(reference), 0, in_place=True)
            if manifest is None:
                raise self._unknown(name, reference)
            self._shelf.manifests.delete(manifest.name)
            return Removed(
                manifest.name, self._shelf.drop(manifest), not self._shelf.manifests.owned(manifest)
            )

    def copy(self, source: str, destination: str) -> StoredModel:
        """Give a model, or a GGUF file on disk, a further name. No byte is copied. CONFLICT where the name
        is taken."""
        name = str(parse_name(destination))
        model = self.resolve(source)
        with writing(self._shelf.models), self._shelf.lock():
            manifests = self._shelf.manifests
            if manifests.exists(name):
                raise LlmrunError(CONFLICT, f"the name {name} is taken", hint=f"llmrun rm {name} first")
            if not isinstance(reference := parse_reference(source), FileRef):
                original = manifests.get(model.name)
                if original is None:  # removed in this very moment
                    raise self._unknown(source, reference)
                manifest = msgspec.structs.replace(original, name=name, reference=name, created=now())
            else:
                manifest = Manifest(
                    name=name,
                    reference=name,
                    source=model.source,
                    created=now(),
                    files=tuple(manifests.entry(path, None) for path in model.files),
                    facts=read_facts(model.files),
                )
            manifests.put(manifest)
        return self._shelf.model(manifest)

    def create(
        self,
        name: str,
        modelfile: Modelfile,
        *,
        on_progress: Callable[[PullProgress], None] | None = None,
    ) -> StoredModel:
        """Make the model `name` of what `modelfile` says, in place of one that has the name. What it is FROM
        is pulled where it is not here; the weights are shared, not copied."""
        modelfile.require_usable()
        name = str(parse_name(name))
        reference = modelfile.sources[0]
        base = self._find(reference)
        with writing(self._shelf.models):
            if base is None or not self._shelf.whole(base):
                if not isinstance(reference, NameRef):
                    recipe = Recipe(str(reference), modelfile, name)
                    made = Pull(self._shelf, self._catalogue, recipe, Meter(on_progress)).run()
                    return self._shelf.model(made)
                self.pull(str(reference), on_progress=on_progress)
            with self._shelf.lock():
                base = self._find(reference)
                if base is None:  # removed in this very moment
                    raise self._unknown(str(reference), reference)
                old = self._shelf.manifests.readable(name)
                manifest = derive(base, modelfile, name)
                self._shelf.manifests.put(manifest)
                if old:
                    self._shelf.drop(old)
        return self._shelf.model(manifest)

    def _parse(self, text: str, quant: str | None) -> Reference:
        """What `text` names, in the quant that is wanted. USAGE where it has no quants to choose from."""
        reference = parse_reference(text)
        if quant is None:
            return reference
        chosen: Reference | None = reference
        if isinstance(reference, NameRef):
            recipe = self._recipe(reference, text)
            chosen = recipe.modelfile.sources[0]
        elif isinstance(reference, RepoRef) and (reference.quant or reference.file):
            chosen = None
        if isinstance(chosen, RepoRef):
            return parse_reference(f"{chosen.HUB}{chosen.repo}:{quant}")
        raise LlmrunError(
            USAGE,
            f"{text} is one file, not a repository with quants",
            hint="leave --quant out, or name a repository",
        )

    def full_name(self, name: str) -> str:
        """The name that `name` is short for, also of a model whose files are gone. UNKNOWN_MODEL where there
        is no such model."""
        reference = parse_reference(name)
        manifest = self._find(reference)
        if manifest is None:
            raise self._unknown(name, reference)
        return manifest.name

    def create_quantized(
        self, name: str, modelfile: Modelfile, kind: str, *, on_progress: Callable[[PullProgress], None]
    ) -> StoredModel:
        """As `create`, with the weights in the number type `kind`. INVALID_REQUEST where there is no such one
        or the weights lost precision already."""
        wish = Wish(type_of(kind), f"{parse_name(name).name}:{secrets.token_hex(4)}")
        plain = f"{wish.name}-plain"
        try:
            base = self.create(plain, modelfile, on_progress=on_progress)
            made = self._quantizer.run(peek_at(base), wish, on_progress)
            return self.create(name, Modelfile(sources=(parse_name(made),)))
        finally:
            for step in (plain, wish.name):
                if self._shelf.manifests.exists(step):
                    self.remove(step)

    def _recipe(self, reference: Reference, text: str) -> Recipe:
        """What a pull of `reference` should do. UNKNOWN_MODEL where no source is known."""
        if not isinstance(reference, NameRef):
            return Recipe(str(reference), Modelfile(sources=(reference,)))
        if entry := self._catalogue.find(reference):
            return Recipe(entry.name, entry.modelfile, entry.name)
        if manifest := self._shelf.manifests.readable(str(reference)):
            modelfile = Modelfile(
                sources=(parse_reference(manifest.source),),
                options=manifest.options,
                system=manifest.system,
                template=manifest.template,
                messages=manifest.messages,
                license=manifest.license,
            )
            return Recipe(manifest.reference, modelfile, manifest.name)
        if reference.hub:
            return Recipe(str(reference.hub), Modelfile(sources=(reference.hub,)))
        raise self._unknown(text, reference)

    def _held(self, recipe: Recipe) -> Manifest | None:
        """The model of `recipe` as it is here: whole, and with the digest that the recipe pins."""
        if recipe.name:
            manifest = self._shelf.manifests.readable(recipe.name)
        else:
            manifest = next((m for m in self._shelf.manifests.all() if m.reference == recipe.reference), None)
        if manifest is None or not self._shelf.whole(manifest):
            return None
        return manifest if recipe.modelfile.sha256 in (None, manifest.files[0].sha256) else None

    def _find(self, reference: Reference) -> Manifest | None:
        """The manifest that `reference` means: own names first, then what it was pulled by."""
        manifests = self._shelf.manifests
        if isinstance(reference, NameRef):
            if manifest := manifests.get(str(reference)):
                return manifest
            if not reference.tag:
                if (entry := self._catalogue.find(reference)) and (manifest := manifests.get(entry.name)):
                    return manifest
                tagged = [m for m in manifests.all() if m.name.startswith(f"{reference.name}:")]
                if len(tagged) == 1:
                    return tagged[0]
            return self._find(reference.hub) if reference.hub else None
        text = str(reference).lower()
        found = [m for m in manifests.all() if text in (m.reference.lower(), m.source.lower())]
        if not found and isinstance(reference, RepoRef) and not (reference.quant or reference.file):
            found = [m for m in manifests.all() if m.source.lower().startswith((f"{text}:", f"{text}/"))]
        return max(found, key=lambda m: m.created, default=None)

    def _unknown(self, name: str, reference: Reference) -> LlmrunError:
        what = f"there is no model {name!r} on this machine"
        if self.can_pull(name):
            return LlmrunError(UNKNOWN_MODEL, what, hint=f"get it: llmrun pull {name}")
        here = [manifest.name for manifest in self._shelf.manifests.all()]
        near = nearest(str(reference), list(dict.fromkeys([*here, *self._catalogue.names()])))
        if not near:
            hint = "see llmrun list, or get one from the Hub: llmrun pull hf.co/ORG/REPO"
        else:
            hint = f"near it: {', '.join(near)}"
            if near[0] not in here:
                hint += f". Get one: llmrun pull {near[0]}"
        return LlmrunError(UNKNOWN_MODEL, what, hint=hint, near=near)


def _may_change(recipe: Recipe) -> bool:
    """Whether its source may have other bytes tomorrow: a file of a hub that no digest pins."""
    return recipe.modelfile.sha256 is None and isinstance(recipe.modelfile.sources[0], RepoRef | OllamaRef)
