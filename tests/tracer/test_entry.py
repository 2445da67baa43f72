"""A request that begins below somebody else's span is marked as where requests enter the program."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager

import pytest
from opentelemetry import context as otel_context
from opentelemetry import propagate, trace
from opentelemetry.sdk.trace import TracerProvider

import hotspan
from hotspan.testing import capture
from hotspan.tracer import semconv

HEADERS = {"traceparent": f"00-{0xA:032x}-{0xB:016x}-01"}
tracer = TracerProvider().get_tracer("app")


@contextmanager
def sdk_span():
    """The application's own span, by OpenTelemetry's SDK."""
    with tracer.start_as_current_span("GET /answer"):
        yield


@contextmanager
def remote_span(headers=None):
    """A span of another process, as its headers name it; the rest of the context stays."""
    token = otel_context.attach(propagate.extract(headers or HEADERS, otel_context.get_current()))
    try:
        yield
    finally:
        otel_context.detach(token)


@contextmanager
def our_span_used():
    """A stage of ours made current by OpenTelemetry's own means alone."""
    with hotspan.step("outer") as outer:
        pass
    with trace.use_span(outer):
        yield


@contextmanager
def our_headers():
    """A hop over HTTP within the program, from a stage to an endpoint."""
    headers = {}
    with hotspan.step("outer"):
        propagate.inject(headers)
        with remote_span(headers):
            yield


def marks(*around):
    """Return the marks of a request and of a stage in it, both started inside these managers."""
    with capture() as captured, ExitStack() as stack:
        for manager in around:
            stack.enter_context(manager())
        with hotspan.request("ask"), hotspan.step("inside"):
            pass
    return [captured.one(name).attributes.get(semconv.ENTRY) for name in ("request ask", "step inside")]


@pytest.mark.parametrize("around", [sdk_span, remote_span])
def test_a_request_below_another_librarys_span_is_an_entry(around):
    """Whether that span is of this process or of another one; what lies in the request is none."""
    assert marks(around) == [True, None]


@pytest.mark.parametrize(
    "around",
    [
        pytest.param([], id="no-parent"),
        pytest.param([lambda: hotspan.step("outer")], id="our-stage"),
        pytest.param([our_span_used], id="our-stage-by-use-span"),
        pytest.param([lambda: hotspan.step("outer"), sdk_span], id="beyond-another-span-our-stage"),
        pytest.param([our_headers], id="our-stage-by-its-headers"),
    ],
)
def test_a_request_with_no_parent_or_one_of_ours_is_no_entry(around):
    """A root needs no mark, and below a stage of this program in the same trace nothing enters it."""
    assert marks(*around) == [None, None]


def test_a_loop_of_ours_that_takes_in_messages_is_not_around_them():
    """A request that continues another trace than the stage around it enters the program there."""
    assert marks(lambda: hotspan.step("consume"), remote_span) == [True, None]


@pytest.mark.parametrize("make", [hotspan.step, hotspan.agent, hotspan.retrieval, hotspan.stage])
def test_only_requests_are_entries(make):
    """A stage of another kind below the application's span is a part of a request that nobody named."""
    with capture() as captured, sdk_span(), make("own"):
        pass

    (span,) = captured.spans
    assert span.parent_id is not None
    assert semconv.ENTRY not in span.attributes


def test_decorated_requests_of_every_kind_are_entries():
    """Functions and streams alike."""
    with capture() as captured, sdk_span():
        hotspan.request("called")(lambda: None)()
        list(hotspan.request("streamed")(lambda: iter("ab"))())

    assert [span.attributes.get(semconv.ENTRY) for span in captured.spans] == [True, True]


def test_a_stage_below_another_librarys_span_names_the_stage_around_it():
    """A file without the other library's spans still tells what the stage is a part of."""
    with capture() as captured, hotspan.request("whole"), sdk_span(), sdk_span(), hotspan.retrieval("kb"):
        with hotspan.step("inner"):
            pass

    whole = captured.one("request whole")
    assert captured.one("retrieval kb").attributes[semconv.OUTER_STAGE] == whole.span_id
    assert semconv.OUTER_STAGE not in captured.one("step inner").attributes
    assert semconv.OUTER_STAGE not in whole.attributes


def test_a_parent_that_is_a_stage_needs_no_other_name():
    """Neither the very stage made current by OpenTelemetry's means, nor one that a header names."""
    for around in (our_span_used, our_headers):
        with capture() as captured, around(), hotspan.retrieval("kb"):
            pass
        assert semconv.OUTER_STAGE not in captured.one("retrieval kb").attributes
