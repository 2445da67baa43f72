"""What the entries of the dialect table are made of, and how one is asked about a span."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from hotspan.tracer.record import SpanRecord

NOTHING: Final = ""  # the span has no stage, whatever else is said of it
VAGUE: Final = "?"  # the writer's kind fits anything (chain, task, span): only the name may tell more

Kinds = tuple[str, "Mapping[str, str]"]  # an attribute key, and the stage (NOTHING, VAGUE) for each value


class Reading(NamedTuple):
    """What one span says of itself, before its place in the tree is looked at."""

    stage: str | None
    is_guess: bool = False  # read from a name or an address, which may say what is meant and not what is


NO_STAGE: Final = Reading(None)


class Rule(NamedTuple):
    """A special case of one writer: all conditions hold, and the stage is known, or may be guessed."""

    stage: str  # a stage, NOTHING or VAGUE
    name: re.Pattern[str] | None = None  # is found in the span's name
    having: tuple[tuple[str, re.Pattern[str]], ...] = ()  # each is found in the value of that attribute
    lacking: tuple[str, ...] = ()  # attributes of which it has none
    is_guess: bool = False  # what is around the span has to agree, as with a stage that is read from a name

    def fits(self, span: SpanRecord) -> bool:
        """Return whether every condition holds."""
        attributes = span.attributes
        if self.name is not None and self.name.search(span.name) is None:
            return False
        for key, pattern in self.having:
            value = attributes.get(key)
            if value is None or pattern.search(str(value)) is None:
                return False
        return not any(key in attributes for key in self.lacking)


class Dialect(NamedTuple):
    """One writer of spans: what to trust in them, and what lies."""

    name: str
    scopes: tuple[str, ...] = ()  # beginnings of the scope's name
    prefix: str = ""  # beginning of the span's name, where the scope is the application's own
    markers: tuple[str, ...] = ()  # attributes that tell the writer in files that hold no scopes
    signs: tuple[Rule, ...] = ()  # the same where no attribute tells: each fits a span of every trace
    rules: tuple[Rule, ...] = ()  # the first that fits decides
    kinds: tuple[Kinds, ...] = ()  # after the rules; the general ones are not asked when there are some
    name_key: str = ""  # attribute with the name that the user gave, where the span's own is a template
    has_telling_names: bool = True  # False: names hold users' text, and tell nothing
    answers_always: bool = False  # a model span without an answer, usage or error made no model call
    fails_silently: bool = False  # a model span without an answer below a span that failed is what failed
    hides_errors: bool = False  # a span stays OK when the last thing it did failed
    stamps_first_chunk: bool = False  # what it calls the first token is the first chunk, empty or not
    returns_stream: re.Pattern[str] | None = (
        None  # the name of a model span that ends when its stream is made
    )
    has_empty_runs: bool = False  # an agent's run may be an empty span, beside the one that holds what it did
    has_loose_steps: bool = False  # a parent may be over, or a tool that runs beside; a failure has no end
    has_failed_with_event: bool = False  # an exception event is a failure, whatever the status says

    def verdict(self, span: SpanRecord) -> Reading:
        """Return the stage, NOTHING or VAGUE; `NO_STAGE` where the general rules are to be asked."""
        for rule in self.rules:
            if rule.fits(span):
                return Reading(rule.stage, rule.is_guess)
        if not self.kinds:
            return NO_STAGE
        said = kind_of(span, self.kinds)
        return Reading(VAGUE if said is None else said)


def kind_of(span: SpanRecord, kinds: tuple[Kinds, ...]) -> str | None:
    """Return what the first of the keys with a known value says; `None` where none says anything."""
    vague = None
    for key, stages in kinds:
        value = span.attributes.get(key)
        if isinstance(value, str):
            stage = stages.get(value.strip('"'))  # MLflow quotes its values
            if stage is not None and stage != VAGUE:
                return stage
            vague = vague if stage is None else VAGUE
    return vague
