"""The models of this machine: found, pulled, named, removed.

Every method may be called from any thread and process at once. Reading takes no lock and works on a
read-only folder; nothing is created until something is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from llmrun.config import Paths
from llmrun.errors import BAD_FILE, CONFLICT, INVALID_REQUEST, UNKNOWN_MODEL, LlmrunError
from llmrun.store.blobs import Blobs
from llmrun.store.catalogue import Catalogue
from llmrun.store.creating import derive
from llmrun.store.disk import writing
from llmrun.store.facts import read_facts
from llmrun.store.finding import Finder
from llmrun.store.gather import Gather, Gathered
from llmrun.store.joining import Companion, joined, offer_of_held, pinned
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
from llmrun.store.steps import lock_key, steps_to
from llmrun.store.transports import Offer, offer_of
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
        self._finder = Finder(self._shelf, self._catalogue)
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
        manifest = self._finder.find(reference)
        if manifest is None:
            raise self._finder.unknown(name, reference)
        model = self._shelf.model(manifest)
        if model.missing:
            gone = next((path for path in model.files if not path.is_file()), model.path)
            raise LlmrunError(
                UNKNOWN_MODEL,
                f"the file of {model.name} is gone: {gone}",
                hint=f"{model.mended_by}, or llmrun rm {model.name}",
            )
        return model

    def can_pull(self, name: str) -> bool:
        """Whether `pull` would know where to look: a catalogue name or a reference to a remote source."""
        return self._finder.can_pull(name)

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
            recipe = self._finder.recipe(self._finder.parse(reference, quant), reference)
            held = self._finder.held(recipe)
            if held and not _may_change(recipe):
                meter.note(f"{held.name} is here already")
                return self._shelf.model(held)
            try:
                manifest = self._pull(recipe, meter).run()
            except LlmrunError as error:
                if held is None:
                    raise
                meter.note(f"{error.message}; {held.name} stays as it is here")
                manifest = held
        return self._shelf.model(manifest)

    def preview(self, reference: str, *, quant: str | None = None) -> Preview:
        """What `pull` would fetch and whether there is room for it. Fetches and writes nothing."""
        from llmrun.store.transports.https import sized

        recipe = self._finder.recipe(self._finder.parse(reference, quant), reference)
        held = self._finder.held(recipe)
        if held and not _may_change(recipe):
            return preview_of_held(self._shelf, held)
        offer = self._pull(recipe, Meter(None)).offer()
        return preview(self._shelf, sized(offer), Gather(self._shelf, Meter(None), recipe.modelfile))

    def peek(self, name: str) -> Peek:
        """What the headers of a model say. One that is not here is read where it lies, by range requests:
        nothing is fetched or kept. The error of the first source where none can be read."""
        reference = parse_reference(name)
        if isinstance(reference, FileRef) or self._finder.find(reference):
            return peek_at(self.resolve(name))
        recipe = self._finder.recipe(reference, name)
        tried: list[Peek | LlmrunError] = []
        for source in recipe.modelfile.sources:
            tried.append(found := self._peeked(source, recipe, name))
            if isinstance(found, Peek):
                return found
        problem = tried[0]
        assert isinstance(problem, LlmrunError)
        raise problem

    def _peeked(self, source: Reference, recipe: Recipe, name: str) -> Peek | LlmrunError:
        from llmrun.store.transports.https import sized

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
                manifest = self._finder.find(reference)
            except LlmrunError as error:
                if error.kind is not BAD_FILE:
                    raise
                self._shelf.manifests.delete(str(reference))
                return Removed(str(reference), 0, in_place=True)
            if manifest is None:
                raise self._finder.unknown(name, reference)
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
                    raise self._finder.unknown(source, reference)
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
        return self._create(str(parse_name(name)), modelfile, on_progress)

    def _create(
        self, name: str, modelfile: Modelfile, on_progress: Callable[[PullProgress], None] | None
    ) -> StoredModel:
        """As `create`; `name` may be a step's."""
        reference = modelfile.sources[0]
        base = self._finder.find(reference)
        meter = Meter(on_progress)
        with writing(self._shelf.models):
            if not isinstance(reference, NameRef):
                # A source means its own files and terms, not what a Modelfile here made of them.
                if base is None or base.reference != str(reference) or not self._shelf.whole(base):
                    return self._shelf.model(self._pull(Recipe(name, modelfile, name), meter).run())
            elif base is None or not self._shelf.whole(base):
                self.pull(str(reference), on_progress=on_progress)
                base = self._finder.find(reference)
            if base is None:  # removed in this very moment
                raise self._finder.unknown(str(reference), reference)
            made = self._derived(base, modelfile, name, meter)
        return self._shelf.model(made)

    def _derived(self, base: Manifest, modelfile: Modelfile, name: str, meter: Meter) -> Manifest:
        """The model `name`, registered: `base`, which is here, under what `modelfile` says."""

        def register(files: Gathered) -> Manifest:
            old = self._shelf.manifests.readable(name)
            manifest = derive(base, modelfile, name, files.entries)
            self._shelf.manifests.put(manifest)
            if old:
                self._shelf.drop(old)
            return manifest

        companions = self._companions(modelfile, meter)
        offer = offer_of_held(self._shelf, base, without=("draft",) if modelfile.draft else ())
        return Gather(self._shelf, meter, modelfile).run(joined(offer, companions), register)

    def _pull(self, recipe: Recipe, meter: Meter) -> Pull:
        return Pull(self._shelf, self._catalogue, recipe, meter, self._companions(recipe.modelfile, meter))

    def _companions(self, modelfile: Modelfile, meter: Meter) -> Sequence[Companion]:
        """What `modelfile` names beside the weights, as their sources offer it."""
        return [
            Companion(role, str(reference), self._offer(reference, meter))
            for role, reference in modelfile.companions
        ]

    def _offer(self, reference: Reference, meter: Meter) -> Offer:
        """What `reference` gives, from the model that is here where it is one."""
        if isinstance(reference, FileRef):
            return offer_of(reference)
        held = self._finder.find(reference)
        if held and self._shelf.whole(held):
            return offer_of_held(self._shelf, held)
        recipe = self._finder.recipe(reference, str(reference))
        return pinned(self._pull(recipe, meter).offer(), recipe.modelfile)

    def full_name(self, name: str) -> str:
        """The name that `name` is short for, also of a model whose files are gone. UNKNOWN_MODEL where there
        is no such model."""
        reference = parse_reference(name)
        manifest = self._finder.find(reference)
        if manifest is None:
            raise self._finder.unknown(name, reference)
        return manifest.name

    def create_quantized(
        self, name: str, modelfile: Modelfile, kind: str, *, on_progress: Callable[[PullProgress], None]
    ) -> StoredModel:
        """As `create`, with the weights in the number type `kind`. INVALID_REQUEST where there is no such one
        or the weights lost precision already."""
        name, kind = str(parse_name(name)), type_of(kind)
        steps, meter = steps_to(name), Meter(on_progress)
        waiting = f"{name} is being made already; waiting for it"
        with (
            writing(self._shelf.models),
            self._shelf.key_lock(lock_key(name), lambda: meter.note(waiting)),
        ):
            self._forget(steps)  # of one that was killed
            try:
                plain = self._create(steps.plain, modelfile, on_progress)
                self._quantizer.run(peek_at(plain), Wish(kind, steps.made), on_progress)
                made = self._shelf.manifests.get(steps.made)
                assert made is not None  # we hold its lock
                return self._shelf.model(self._derived(made, Modelfile(sources=()), name, meter))
            finally:
                self._forget(steps)

    def _forget(self, names: Sequence[str]) -> None:
        with self._shelf.lock():
            for name in names:
                self._shelf.forget(name)


def _may_change(recipe: Recipe) -> bool:
    """Whether its source may have other bytes tomorrow: a file of a hub that no digest pins."""
    return recipe.modelfile.sha256 is None and isinstance(recipe.modelfile.sources[0], RepoRef | OllamaRef)
