"""Attribute values: what is kept of each type, at the moment it is set."""

import datetime as dt
import decimal
import enum
import http
import pathlib
import uuid

import numpy as np
import pytest

import hotspan
from hotspan.testing import capture


class Colour(str, enum.Enum):  # noqa: UP042 - the older way to write it
    """Text that is an enumeration."""

    RED = "red"


class Unreadable:
    """Raises in every way that tracing might ask it."""

    def __getattr__(self, name):
        raise RuntimeError(name)

    def __str__(self):
        raise RuntimeError


def self_containing():
    """Return a list of a thousand references to itself."""
    items = []
    items.extend([items] * 1_000)
    return items


def recorded(value):
    """Return what a span kept of the value, and the span's attributes."""
    with capture() as captured:
        with hotspan.step() as span:
            span.set("key", value)
    attributes = captured.spans[0].attributes
    return attributes["key"], attributes


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        pytest.param("text", "text", id="str"),
        pytest.param(True, True, id="bool"),
        pytest.param(0, 0, id="zero"),
        pytest.param(1.5, 1.5, id="float"),
        pytest.param(None, None, id="none"),
        pytest.param(b"\x00\xff", b"\x00\xff", id="bytes"),
        pytest.param(2**63 - 1, 2**63 - 1, id="largest-int"),
        pytest.param(2**63, str(2**63), id="int-too-large"),
        pytest.param(-(2**63) - 1, str(-(2**63) - 1), id="int-too-small"),
        pytest.param(10**5000, "<int of 16610 bits>", id="int-without-digits"),
        pytest.param(http.HTTPStatus.OK, 200, id="int-enum"),
        pytest.param(Colour.RED, "red", id="str-enum"),
        pytest.param(np.float32(1.5), 1.5, id="np-float32"),
        pytest.param(np.float64(0.1), 0.1, id="np-float64"),
        pytest.param(np.longdouble(1.5), 1.5, id="np-longdouble"),
        pytest.param(np.int64(3), 3, id="np-int64"),
        pytest.param(np.bool_(True), True, id="np-bool"),
        pytest.param(np.array([1.5, 2.5], np.float32), [1.5, 2.5], id="np-array"),
        pytest.param(np.zeros((3, 2), np.int8), [[0, 0]] * 3, id="np-matrix"),
        pytest.param(np.zeros(768, np.float32), "<ndarray 768>", id="embedding-array"),
        pytest.param([0.1] * 768, "<list of 768 floats>", id="embedding-list"),
        pytest.param([1, None, "x", 2.5, True], [1, None, "x", 2.5, True], id="mixed-list"),
        pytest.param((1, 2), [1, 2], id="tuple"),
        pytest.param(range(3), [0, 1, 2], id="range"),
        pytest.param({"a": {"b": [1]}, 3: None}, {"a": {"b": [1]}, "3": None}, id="dict"),
        pytest.param(decimal.Decimal("1.10"), "1.10", id="decimal"),
        pytest.param(dt.date(2026, 1, 2), "2026-01-02", id="date"),
        pytest.param(pathlib.PurePosixPath("/a/b"), "/a/b", id="path"),
        pytest.param(uuid.UUID(int=1), str(uuid.UUID(int=1)), id="uuid"),
        pytest.param(object(), "<object>", id="object"),
        pytest.param(Unreadable(), "<unreadable>", id="unreadable"),
    ],
)
def test_what_is_kept(value, kept):
    """Numbers stay numbers, what is no data becomes its type's name, and nothing raises."""
    found, _ = recorded(value)

    assert found == kept
    assert type(found) is type(kept)


def test_nan_is_kept_as_a_number():
    """A score that is no number does not lose its span."""
    found, _ = recorded(float("nan"))

    assert found != found  # noqa: PLR0124 - NaN is the value that differs from itself


@pytest.mark.parametrize(
    ("value", "length", "kept_length"),
    [
        pytest.param("é" * 200_000, 200_000, 131_072, id="text"),
        pytest.param(b"x" * 200_000, 200_000, 131_072, id="bytes"),
        pytest.param(list(range(5_000)), 5_000, 1_024, id="list"),
    ],
)
def test_what_is_cut_is_said(value, length, kept_length):
    """A value over the bound is cut, and its length stands beside it."""
    found, attributes = recorded(value)

    assert len(found) == kept_length
    assert attributes["key.hotspan.original_length"] == length


def test_a_list_that_holds_itself_ends():
    """Nesting is bounded in depth and in the number of items altogether."""
    found, _ = recorded(self_containing())

    assert len(found) == 1_000


def test_values_are_taken_when_they_are_set():
    """What the program does to a list afterwards does not change the span."""
    items = [1]
    with capture() as captured:
        with hotspan.step() as span:
            span.set("items", items)
            items.append(2)

    assert captured.spans[0].attributes["items"] == [1]


@pytest.mark.parametrize(
    "key", [3, None, ("a", 1), Colour.RED, [1], Unreadable()], ids=lambda k: type(k).__name__
)
def test_keys_become_text(key):
    """A key of any type loses neither the span nor its batch."""
    with capture() as captured:
        with hotspan.step() as span:
            span.set(key, 1)
            span.add_event("e", {"k": 1})

    assert all(isinstance(name, str) for name in captured.spans[0].attributes)


def test_limits_cut_what_matters_least():
    """Over the limit the program's later keys are counted as dropped; the stage's own figures still fit."""
    with capture() as captured:
        with hotspan.step() as span:
            for i in range(400):
                span.set(f"k{i}", i)
            span.set("k0", "again").set("hotspan.stream.items", 3)
            for i in range(2_000):
                span.add_event(f"e{i}")
            span.record_exception(ValueError())
            for _ in range(200):
                span.add_link(span.get_span_context())
    (found,) = captured.spans

    assert found.attributes["k0"] == "again"
    assert found.attributes["hotspan.stream.items"] == 3
    assert found.n_dropped_attributes == 400 - (256 - 2) + 1
    assert "k252" in found.attributes
    assert "k253" not in found.attributes
    assert len(found.attributes) == 256
    assert (len(found.events), found.n_dropped_events) == (1_024, 977)
    assert (found.events[0].name, found.events[-1].name) == ("e0", "exception")
    assert (len(found.links), found.n_dropped_links) == (128, 72)


@pytest.mark.parametrize("order", [1, -1], ids=["important-last", "important-first"])
def test_the_most_important_keys_are_kept_in_whatever_order_they_are_set(order):
    """Of each kind 300 are set: only the stage's own figures are kept, the rest is counted, to the key."""
    kinds = ("own.", "gen_ai.x.", "hotspan.x.")[::order]
    with capture() as captured:
        with hotspan.step() as span:
            for kind in kinds:
                for i in range(300):
                    span.set(f"{kind}{i}", i)
    (found,) = captured.spans

    assert len(found.attributes) == 256
    assert all(key.startswith("hotspan.") for key in found.attributes)
    assert found.n_dropped_attributes == 900 + 2 - 256


@pytest.mark.parametrize("prefix", ["gen_ai.", "hotspan.", "error.", "own."])
def test_no_kind_of_key_is_without_a_limit(prefix):
    """A running span does not grow without end, whatever the keys are called, nor does what is delivered."""
    with capture() as captured:
        with hotspan.step() as span:
            for i in range(20_000):
                span.set(f"{prefix}{i}", i)
            n_held = len(span.attributes)
    (found,) = captured.spans

    assert n_held <= 3 * 256
    assert len(found.attributes) == 256
    assert found.n_dropped_attributes == 20_000 + 2 - 256


def test_attributes_that_a_stage_is_given_have_the_same_limit():
    """What is given at decoration counts like what is set, and comes before it."""
    given = {f"given{i}": i for i in range(300)}
    with capture() as captured:
        with hotspan.stage("own", **given) as span:
            span.set("hotspan.x", 1).set("later", 2)
        with hotspan.stage("own", **given):
            pass
    first, second = captured.spans

    assert (len(first.attributes), first.n_dropped_attributes) == (256, 301 + 2 - 256)
    assert (len(second.attributes), second.n_dropped_attributes) == (256, 301 - 256)
    assert first.attributes["hotspan.x"] == 1
    assert "later" not in first.attributes


def test_an_event_and_a_link_have_limits_of_their_own(tmp_path):
    """Of one event's or link's attributes the first 128 are kept; how many were not is in the file."""
    many = {f"k{i}": i for i in range(1_000)}
    path = tmp_path / "run.jsonl"
    hotspan.configure(file=path)
    with hotspan.step() as span:
        span.add_event("e", many)
        span.record_exception(ValueError("x"), many)
        span.add_link(span.get_span_context(), many)
    hotspan.shutdown()
    ((found,),) = (trace.spans for trace in hotspan.load(path))
    plain, exception = found.events

    assert list(plain.attributes) == list(many)[:128]
    assert plain.n_dropped_attributes == 1_000 - 128
    assert exception.attributes["exception.type"] == "ValueError"
    assert (len(exception.attributes), exception.n_dropped_attributes) == (128, 1_002 - 128)
    assert (len(found.links[0].attributes), found.n_dropped_attributes) == (128, 1_000 - 128)


def test_spans_do_not_share_what_is_set_on_one():
    """Attributes that are known at decoration are shared; what one call sets is its own."""
    stage = hotspan.retrieval("faiss", top_k=3)
    with capture() as captured:
        with stage as span:
            span.set("n", 1)
        with stage:
            pass
    first, second = captured.spans

    assert first.attributes["n"] == 1
    assert "n" not in second.attributes
    assert second.attributes["gen_ai.request.top_k"] == 3
