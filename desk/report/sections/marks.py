"""Which parts of a report a model wrote: a line that people read, and marks that programs read.

The marks are JSON-LD of schema.org, one block a page. `digitalSourceType` has the term of schema.org and that of the
IPTC's list. The same terms stand at the marked elements, as `data-digital-source-type`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from markupsafe import Markup

    from ....evaluation.closing import Results
    from ....evaluation.manifest import Authors, RunExposure
    from ...remarks import ModelRemark

BY_MODEL, BY_RULES, BY_BOTH, BY_PERSON = (
    "trainedAlgorithmicMedia",
    "algorithmicMedia",
    "compositeWithTrainedAlgorithmicMedia",
    "digitalCreation",
)
IPTC: Final = "http://cv.iptc.org/newscodes/digitalsourcetype/"
SCHEMA_NAMES: Final = {
    BY_MODEL: "TrainedAlgorithmicMediaDigitalSource",
    BY_RULES: "AlgorithmicMediaDigitalSource",
    BY_BOTH: "CompositeWithTrainedAlgorithmicMediaDigitalSource",
}
"""schema.org has no name for the IPTC's newest term of what a person made."""
COMPUTED: Final = frozenset(
    ("hold-out", "power", "book", "stress", "risk", "tried", "data", "published", "rules", "search-tests", "spend")
)
"""Sections in which the program wrote every sentence and figure, but for formulas that a table quotes."""
WRITTEN: Final = "hypotheses, mechanisms, formulas, and the reasons and doubts that agents gave"
NOTHING_WRITTEN: Final = (
    "No language model wrote any part of this report. Hypotheses and formulas come from the offline researcher, a set "
    "of rules; the program computed every figure, verdict and drawing and wrote all other sentences."
)


@dataclass(frozen=True)
class ReportMarks:
    """Who wrote the parts of one report.

    Attributes
    ----------
    wrote
        Whether a language model answered the agents.
    models
        Name and full name of these models; empty where only the results are known, which do not say who answered.
    sources, makers
        The term of each factor's hypothesis and formula, and the models that wrote them, by id.
    people
        Parts of a person.
    """

    wrote: bool
    models: Sequence[str] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    makers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    people: Sequence[str] = ()

    @classmethod
    def read(cls, exposure: RunExposure | None, results: Results) -> ReportMarks:
        """Return the marks of a run; without its record, by the researcher that the results name."""
        if exposure is None:
            named = (results.researcher or "").split("; ")
            return cls(any(not name.startswith("offline") for name in named if name))
        authors = exposure.run.authors
        sources = {name: _find_source(split.authors, exposure) for name, split in exposure.factors.items()}
        makers = {name: _list_makers(split.authors, exposure) for name, split in exposure.factors.items()}
        return cls(exposure.language_model, _list_makers(authors, exposure), sources, makers, authors.people)

    def find_source(self, factor: str) -> str:
        """Return the term of a factor's hypothesis and formula."""
        return self.sources.get(factor, BY_MODEL if self.wrote else BY_RULES)

    def describe(self, remark: ModelRemark | None) -> str:
        """Return the line that says which parts a model wrote."""
        spoke = bool(remark and remark.text)
        brought = f" A person brought: {', '.join(self.people)}." if self.people else ""
        said = f" A language model ({remark.model}) wrote the remark above." if remark and spoke else ""
        if self.wrote:
            rest = "The program computed every figure, verdict and drawing and wrote all other sentences."
            who = "Language models" if len(self.models) > 1 else "A language model"
            names = f": {', '.join(self.models)}" if self.models else ""
            return f"{who} wrote {WRITTEN}{names}.{said}{brought} {rest}"
        if spoke:
            return f"{said.strip()}{brought} {NOTHING_WRITTEN.replace('any part', 'any other part')}"
        return f"{NOTHING_WRITTEN}{brought}"

    def write(self, title: str, factors: Iterable[str], anchors: Iterable[str], remark: ModelRemark | None) -> Markup:
        """Return the JSON-LD of one page with these factors and sections, safe inside a script element."""
        from markupsafe import Markup

        parts = [_mark("#remark", "a model's remark", BY_MODEL, [remark.model])] if remark and remark.text else []
        for factor in factors:
            source = self.find_source(factor)
            makers = self.makers.get(factor, self.models)
            parts += [
                _mark(f"#{factor}-{part}", f"{part} of {factor}", source, makers) for part in ("hypothesis", "formula")
            ]
        parts += [_mark(f"#{name}", name, BY_RULES, ()) for name in anchors if name in COMPUTED]
        whole = BY_BOTH if self.wrote or (remark and remark.text) else BY_RULES
        body = {"@context": "https://schema.org", **_mark("", title, whole, ()), "hasPart": parts}
        text = json.dumps(body, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
        for sign in "<>&":  # a text of a model may hold the end of the element
            text = text.replace(sign, f"\\u{ord(sign):04x}")
        return Markup(text)


def _list_makers(authors: Authors, exposure: RunExposure) -> list[str]:
    """Return the language models among the authors, with their full names."""
    models = [exposure.models[name] for name in authors.models]
    return [f"{model.name} ({model.model})" for model in models if not model.is_rules]


def _find_source(authors: Authors, exposure: RunExposure) -> str:
    kinds = {BY_RULES if exposure.models[name].is_rules else BY_MODEL for name in authors.models}
    kinds |= {BY_PERSON} if authors.people else set()
    if BY_MODEL in kinds:
        return BY_MODEL if len(kinds) == 1 else BY_BOTH
    return BY_PERSON if kinds == {BY_PERSON} else BY_RULES


def _mark(place: str, name: str, source: str, makers: Sequence[str]) -> dict[str, Any]:
    names = [f"https://schema.org/{SCHEMA_NAMES[source]}"] if source in SCHEMA_NAMES else []
    made = [{"@type": "SoftwareApplication", "name": maker} for maker in makers]
    return {
        "@type": "CreativeWork",
        **({"@id": place} if place else {}),
        "name": name,
        "digitalSourceType": [*names, f"{IPTC}{source}"],
        **({"creator": made} if made else {}),
    }
