"""Errors that hide: in an attribute, in an event, or in the span above or below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotspan.analysis.dialects.answers import has_answer
from hotspan.analysis.dialects.reading import read
from hotspan.analysis.dialects.table import dialect_of
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hotspan.tracer.record import SpanRecord


def has_failed(span: SpanRecord) -> bool:
    """Return whether a span without the status of an error says elsewhere that it failed."""
    attributes = span.attributes
    if span.status == "error":
        return False
    if attributes.get(semconv.ERROR_TYPE) or attributes.get(semconv.LANGFUSE_LEVEL) == "ERROR":
        return True
    if attributes.get(semconv.TASK_STATUS) == "failure":
        return True
    if not has_exception(span):
        return False
    dialect = dialect_of(span)
    return dialect is not None and dialect.has_failed_with_event


def makes_no_call(span: SpanRecord) -> bool:
    """Return whether a model span of a writer that always shows an answer shows none, and did not fail.

    A call below it may still be one: the span is then a wrapper.
    """
    dialect = dialect_of(span)
    if dialect is None or not dialect.answers_always or span.status == "error":
        return False
    return not has_answer(span) and not has_exception(span)


def has_exception(span: SpanRecord) -> bool:
    """Return whether a span recorded an exception, which may have been handled."""
    return any(event.name == semconv.EXCEPTION_EVENT for event in span.events)


def with_failures(spans: list[SpanRecord]) -> list[SpanRecord]:
    """Return the spans with the errors that their writers left at the span above or the one below."""
    dialects = [dialect_of(span) for span in spans]
    hides = [dialect is not None and dialect.hides_errors for dialect in dialects]
    is_silent = [dialect is not None and dialect.fails_silently for dialect in dialects]
    if not (any(hides) or any(is_silent)):
        return spans
    children = _children(spans)
    for index in _from_the_leaves(children, len(spans)):
        last = max(children[index], key=lambda child: spans[child].start_ns, default=None)
        if last is None:
            continue
        if hides[index] and spans[last].status == "error" and read(spans[last]).stage != semconv.TOOL:
            spans[index] = spans[index]._replace(status="error")
        if is_silent[last] and spans[index].status == "error" and _is_unanswered(spans[last]):
            spans[last] = spans[last]._replace(status="error")
    return spans


def _is_unanswered(span: SpanRecord) -> bool:
    return read(span).stage == semconv.GENERATION and not has_answer(span)


def _children(spans: Sequence[SpanRecord]) -> list[list[int]]:
    """Return each span's children, and behind the last span those that have no parent here."""
    index_of = {span.span_id: index for index, span in enumerate(spans)}
    children: list[list[int]] = [[] for _ in range(len(spans) + 1)]
    for index, span in enumerate(spans):
        children[index_of.get(span.parent_id or "", len(spans))].append(index)
    return children


def _from_the_leaves(children: Sequence[Sequence[int]], above: int) -> Iterator[int]:
    """Yield the spans that a root leads to, children before parents; a loop of parents is led to by none."""
    order = list(children[above])
    for index in order:
        order.extend(children[index])
    return reversed(order)
