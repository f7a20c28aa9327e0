"""One pull: from what was asked for to a registered model.

The sources of a model are tried in order; one that fails (offline, no such file, wrong digest) gives way to
the next, with a note. Bytes that the store already has, under whatever name, are not fetched again. Two
pulls of the same bytes join: the second waits for the first and finds the work done. A model appears, as its
manifest does, when its files are verified and in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from llmrun.errors import DISK, DOWNLOAD, LlmrunError
from llmrun.store import network
from llmrun.store.catalogue import Catalogue
from llmrun.store.facts import Facts
from llmrun.store.gather import Gather, Gathered
from llmrun.store.joining import Companion, joined
from llmrun.store.manifest import Manifest, now
from llmrun.store.modelfile import Modelfile
from llmrun.store.naming import short_name
from llmrun.store.progress import Meter
from llmrun.store.quants import split_label
from llmrun.store.reference import Reference, parse_name
from llmrun.store.shelf import Shelf
from llmrun.store.transports import Offer, offer_of
from llmrun.store.transports.base import Terms


@dataclass(frozen=True)
class Recipe:
    """What to pull. `reference` is what was asked for; `name` None means that the source decides."""

    reference: str
    modelfile: Modelfile
    name: str | None = None


class Pull:
    """`companions` are what the recipe's Modelfile names beside the weights."""

    def __init__(
        self,
        shelf: Shelf,
        catalogue: Catalogue,
        recipe: Recipe,
        meter: Meter,
        companions: Sequence[Companion] = (),
    ) -> None:
        self.shelf, self.catalogue, self.recipe, self.meter = shelf, catalogue, recipe, meter
        self.companions = companions

    def run(self) -> Manifest:
        """The manifest of the model, which is there now."""
        failures = []
        for source in self.recipe.modelfile.sources:
            outcome = self._try(source)
            if isinstance(outcome, Manifest):
                return outcome
            failures.append((source, outcome))
        raise self._none_of(failures)

    def offer(self) -> Offer:
        """What the first source that answers would give."""
        failures = []
        for source in self.recipe.modelfile.sources:
            outcome = _offer_or_error(source)
            if isinstance(outcome, Offer):
                return joined(outcome, self.companions)
            failures.append((source, outcome))
        raise self._none_of(failures)

    def _none_of(self, failures: Sequence[tuple[Reference, LlmrunError]]) -> LlmrunError:
        """The error where every source failed."""
        if len(failures) == 1:
            return failures[0][1]
        reasons = ". ".join(f"{source}: {error}" for source, error in failures)
        hint = network.HINT if network.is_offline() else "check the connection, then pull again"
        return LlmrunError(
            DOWNLOAD, f"no source of {self.recipe.reference} could be used. {reasons}", hint=hint
        )

    def _try(self, source: Reference) -> Manifest | LlmrunError:
        """The model from `source`, or why not. A full disk is no matter of the source and ends the pull."""
        try:
            return self._from(source)
        except LlmrunError as error:
            if error.kind is DISK:
                raise
            if source != self.recipe.modelfile.sources[-1]:
                self.meter.note(f"{source} failed ({error.message}); trying the next source")
            return error

    def _from(self, source: Reference) -> Manifest:
        offer = offer_of(source)
        if offer.why:
            self.meter.note(offer.why)
        gather = Gather(self.shelf, self.meter, self.recipe.modelfile)
        whole = joined(offer, self.companions)
        return gather.run(whole, lambda files: self._register(offer, files))

    def _register(self, offer: Offer, files: Gathered) -> Manifest:
        """Write the manifest; the files of the one it replaces go where nothing else uses them."""
        manifests, modelfile, terms = self.shelf.manifests, self.recipe.modelfile, offer.terms
        name = self.recipe.name or self._name(offer, Path(files.entries[0].path).name)
        old = manifests.readable(name)
        manifest = Manifest(
            name=name,
            reference=self.recipe.reference,
            source=offer.source,
            created=now(),
            files=files.entries,
            facts=files.facts,
            options=modelfile.options.over(terms.options),
            system=terms.system if modelfile.system is None else modelfile.system or None,
            template=_template(modelfile, terms, files.facts),
            messages=modelfile.messages or terms.messages,
            license=modelfile.license or terms.license,
            sources=tuple(map(str, modelfile.sources)) if len(modelfile.sources) > 1 else (),
        )
        manifests.put(manifest)
        if old:
            self.shelf.drop(old)
        return manifest

    def _name(self, offer: Offer, file: str) -> str:
        """The name this very reference got before, else a fresh one."""
        for manifest in self.shelf.manifests.all():
            if manifest.reference == self.recipe.reference:
                return manifest.name
        model, quant = split_label(file)
        wanted = offer.name or (f"{model}:{quant}" if quant else model)
        return short_name(wanted, offer.vendor, self._taken)

    def _taken(self, name: str) -> bool:
        if self.catalogue.find(parse_name(name)):
            return True
        return self.shelf.manifests.exists(name)


def _offer_or_error(source: Reference) -> Offer | LlmrunError:
    try:
        return offer_of(source)
    except LlmrunError as error:
        return error


def _template(modelfile: Modelfile, terms: Terms, facts: Facts) -> str | None:
    """The Modelfile's template; else the source's, where the GGUF has none of its own."""
    if modelfile.template is not None:
        return modelfile.template or None
    return terms.template if facts.kind == "completion" else None
