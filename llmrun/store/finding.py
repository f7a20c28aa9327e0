"""What a reference means here: the stored model, or what to pull for it. Reads, never writes."""

from __future__ import annotations

from dataclasses import replace

from llmrun.errors import UNKNOWN_MODEL, USAGE, LlmrunError
from llmrun.store.catalogue import Catalogue, nearest
from llmrun.store.describing import modelfile_of
from llmrun.store.manifest import Manifest
from llmrun.store.modelfile import Modelfile
from llmrun.store.pull import Recipe
from llmrun.store.reference import FileRef, NameRef, Reference, RepoRef, parse_reference
from llmrun.store.shelf import Shelf


class Finder:
    """Looks among the models of `shelf` and the names of `catalogue`."""

    def __init__(self, shelf: Shelf, catalogue: Catalogue) -> None:
        self.shelf, self.catalogue = shelf, catalogue

    def can_pull(self, name: str) -> bool:
        """Whether `pull` would know where to look: a catalogue name or a reference to a remote source."""
        try:
            reference = parse_reference(name)
        except LlmrunError:
            return False
        if isinstance(reference, NameRef):
            return reference.hub is not None or self.catalogue.find(reference) is not None
        return not isinstance(reference, FileRef)

    def parse(self, text: str, quant: str | None) -> Reference:
        """What `text` names, in the quant that is wanted. USAGE where it has no quants to choose from."""
        reference = parse_reference(text)
        if quant is None:
            return reference
        chosen: Reference | None = reference
        if isinstance(reference, NameRef):
            recipe = self.recipe(reference, text)
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

    def recipe(self, reference: Reference, text: str) -> Recipe:
        """What a pull of `reference` should do. UNKNOWN_MODEL where no source is known."""
        if not isinstance(reference, NameRef):
            return Recipe(str(reference), Modelfile(sources=(reference,)))
        if entry := self.catalogue.find(reference):
            return Recipe(entry.name, entry.modelfile, entry.name)
        if manifest := self.shelf.manifests.readable(str(reference)):
            described = modelfile_of(self.shelf.model(manifest))
            modelfile = replace(
                described,
                # What one source has may change; several promise the very same bytes.
                sha256=described.sha256 if len(described.sources) > 1 else None,
                size=None,
                options=manifest.options,
                license=manifest.license,
            )
            return Recipe(manifest.reference, modelfile, manifest.name)
        if reference.hub:
            return Recipe(str(reference.hub), Modelfile(sources=(reference.hub,)))
        raise self.unknown(text, reference)

    def held(self, recipe: Recipe) -> Manifest | None:
        """The model of `recipe` as it is here: whole, and with the digest that the recipe pins."""
        if recipe.name:
            manifest = self.shelf.manifests.readable(recipe.name)
        else:
            manifest = next((m for m in self.shelf.manifests.all() if m.reference == recipe.reference), None)
        if manifest is None or not self.shelf.whole(manifest):
            return None
        named = list(dict.fromkeys(entry.source for entry in manifest.files if entry.source))
        wanted = [str(reference) for _, reference in recipe.modelfile.companions]
        same = recipe.modelfile.sha256 in (None, manifest.files[0].sha256) and named == wanted
        return manifest if same else None

    def find(self, reference: Reference) -> Manifest | None:
        """The manifest that `reference` means: own names first, then what it was pulled by."""
        manifests = self.shelf.manifests
        if isinstance(reference, NameRef):
            if manifest := manifests.get(str(reference)):
                return manifest
            if not reference.tag:
                if (entry := self.catalogue.find(reference)) and (manifest := manifests.get(entry.name)):
                    return manifest
                tagged = [m for m in manifests.all() if m.name.startswith(f"{reference.name}:")]
                if len(tagged) == 1:
                    return tagged[0]
            return self.find(reference.hub) if reference.hub else None
        text = str(reference).lower()
        found = [m for m in manifests.all() if m.reference.lower() == text]
        found = found or [m for m in manifests.all() if m.source.lower() == text]
        if not found and isinstance(reference, RepoRef) and not (reference.quant or reference.file):
            found = [m for m in manifests.all() if m.source.lower().startswith((f"{text}:", f"{text}/"))]
        return max(found, key=lambda m: m.created, default=None)

    def unknown(self, name: str, reference: Reference) -> LlmrunError:
        what = f"there is no model {name!r} on this machine"
        if self.can_pull(name):
            return LlmrunError(UNKNOWN_MODEL, what, hint=f"get it: llmrun pull {name}")
        here = [manifest.name for manifest in self.shelf.manifests.all()]
        near = nearest(str(reference), list(dict.fromkeys([*here, *self.catalogue.names()])))
        if not near:
            hint = "see llmrun list, or get one from the Hub: llmrun pull hf.co/ORG/REPO"
        else:
            hint = f"near it: {', '.join(near)}"
            if near[0] not in here:
                hint += f". Get one: llmrun pull {near[0]}"
        return LlmrunError(UNKNOWN_MODEL, what, hint=hint, near=near)
