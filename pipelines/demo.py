"""The demo: both reference pipelines on one engine, traced into a file.

Everything that happens once (loading models, the index, the first call of each kind) happens before tracing
is switched on, so that the file holds what a warm service does.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import TYPE_CHECKING, Final, Literal

import hotspan
from hotspan.pipelines.agent import Agent
from hotspan.pipelines.corpus import load_corpus
from hotspan.pipelines.embedder import Embedder
from hotspan.pipelines.engines import embedded_engine, server_engine, vllm_engine
from hotspan.pipelines.engines.optional import need
from hotspan.pipelines.index import open_index
from hotspan.pipelines.quality import Quality, measure
from hotspan.pipelines.questions import QUESTIONS, TASKS
from hotspan.pipelines.rag import Rag, Retriever
from hotspan.pipelines.rerank import CrossEncoderReranker, LateInteraction
from hotspan.pipelines.tools import corpus_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from hotspan.pipelines.corpus import Passage
    from hotspan.pipelines.engines import Engine
    from hotspan.pipelines.rerank import Reranker

    Say = Callable[[str], None]

SERVICE: Final = "hotspan-demo"
ENGINE_SPAN: Final = "llm_request"  # what vLLM calls the span of one request
ENGINE_SPANS_TIMEOUT_S: Final = 10.0
FLUSH_TIMEOUT_S: Final = 10.0
PROGRESS_EVERY_S: Final = 5.0
TRACE_FILE_START: Final = b'{"resourceSpans"'


@dataclass(frozen=True, slots=True)
class Options:
    """What to run, and on what."""

    file: Path
    """The trace file; an older one is replaced."""
    n_questions: int = 12
    """RAG requests."""
    n_tasks: int = 3
    """Agent requests."""
    engine: Literal["embedded", "vllm"] = "embedded"
    """Which engine to start; ignored with `base_url`."""
    base_url: str | None = None
    """A running server that speaks the OpenAI API, instead of an engine of our own."""
    model: str | None = None
    """The engine's model; None for the tiny one, or the first that the server names."""
    api_key: str | None = field(default=None, repr=False)
    corpus: Path | None = None
    """A folder of text files; None for Python's documentation topics."""
    embedding_model: str | None = None
    cross_encoder: str | None = None
    """Reranks instead of late interaction."""
    otlp: str | None = None
    """Where spans go beside the file, such as a Jaeger."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What ran, and what of it is not in the trace."""

    n_passages: int
    quality: Quality | None
    """None for a corpus that no questions with known answers are for."""
    words_are_noise: bool
    flushed: hotspan.FlushResult


@dataclass(frozen=True, slots=True)
class Pipelines:
    """Both pipelines, ready to be asked."""

    rag: Rag
    agent: Agent
    passages: tuple[Passage, ...]
    quality: Quality | None


def run(options: Options, say: Say) -> Outcome:
    """Run the demo.

    Args:
        options: What to run.
        say: Told, in one line each, what takes long right now.

    Raises:
        hotspan.HotspanError: Something that was asked for cannot be used, or the engine failed.  What was
            recorded until then is in the file, and the message says so.
    """
    check_file(options.file, say)
    with ExitStack() as stack:
        receiver = stack.enter_context(hotspan.receiver()) if _starts_vllm(options) else None
        engine = stack.enter_context(_open_engine(options, receiver))
        ready = _prepare(options, engine, say)
        stack.enter_context(ready.agent)
        _use_one_thread(engine, stack)
        _warm_up(ready, say)
        _start_tracing(options)
        try:
            _ask_everything(options, ready, say)
            if receiver is not None:
                _wait_for_engine_spans(options.file, receiver)
        finally:
            flushed = hotspan.shutdown(FLUSH_TIMEOUT_S)
    return Outcome(len(ready.passages), ready.quality, engine.words_are_noise, flushed)


def check_file(file: Path, say: Say) -> None:
    """See that the trace file may be written, and that what it would replace is a trace file too.

    Raises:
        hotspan.ConfigurationError: It may not, or it is not.
    """
    try:
        with file.open("ab+") as opened:
            opened.seek(0)
            start = opened.read(len(TRACE_FILE_START))
    except OSError as exc:
        msg = f"{file}: cannot be written ({exc.strerror}). Give --file a path in a folder that is there."
        raise hotspan.ConfigurationError(msg) from exc
    if start not in (b"", TRACE_FILE_START):
        msg = f"{file}: is not a trace file, and the demo would replace it. Give --file another path."
        raise hotspan.ConfigurationError(msg)
    if start:
        say(f"Replacing the trace file {file} of an earlier run.")


def _starts_vllm(options: Options) -> bool:
    return options.engine == "vllm" and options.base_url is None


def _open_engine(options: Options, receiver: hotspan.receiver | None) -> Engine:
    if options.base_url is not None:
        return server_engine(options.base_url, options.model, api_key=options.api_key)
    if receiver is not None:
        return vllm_engine(options.model, otlp_endpoint=receiver.endpoint)
    return embedded_engine(options.model)


def _prepare(options: Options, engine: Engine, say: Say) -> Pipelines:
    say("Loading the embedding model …")
    embedder = Embedder(options.embedding_model)
    passages = load_corpus(options.corpus)
    index = open_index(passages, embedder, say)
    reranker: Reranker = LateInteraction(index, embedder.name)
    if options.cross_encoder is not None:
        reranker = CrossEncoderReranker(options.cross_encoder)
    quality = measure(QUESTIONS, index, embedder, reranker) if options.corpus is None else None
    retriever = Retriever(index, embedder, reranker)
    return Pipelines(Rag(engine, retriever), Agent(engine, corpus_tools(retriever)), passages, quality)


def _use_one_thread(engine: Engine, stack: ExitStack) -> None:
    # The tiny model's matrices are too small to share: a second thread makes every token slower, and many
    # times slower where something else runs on the machine.
    if engine.name == "transformers" and engine.words_are_noise:
        torch = need("torch", what="The demo")
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(1)


def _warm_up(ready: Pipelines, say: Say) -> None:
    say("Warming up: the first call of each kind is not traced …")
    hotspan.configure(sample_ratio=0.0)
    ready.rag.answer(QUESTIONS[0].text)
    ready.agent.warm_up()


def _start_tracing(options: Options) -> None:
    options.file.write_bytes(b"")
    hotspan.configure(service_name=SERVICE, file=options.file, otlp=options.otlp)


def _ask_everything(options: Options, ready: Pipelines, say: Say) -> None:
    questions, tasks = _requests(options, ready.passages)
    answered = 0
    try:
        for answer, texts, kind in (
            (ready.rag.answer, questions, "RAG"),
            (ready.agent.answer, tasks, "agent"),
        ):
            for text in _with_progress(texts, kind, say):
                answer(text)
                answered += 1
    except hotspan.EngineError as exc:
        msg = f"{exc}\n{_kept(answered, options.file)}"
        raise type(exc)(msg) from exc
    except KeyboardInterrupt:
        say(f"Interrupted. {_kept(answered, options.file)}")
        raise


def _kept(n_answered: int, file: Path) -> str:
    return f"What was recorded until then, {n_answered} whole requests, is in {file}."


def _requests(options: Options, passages: Sequence[Passage]) -> tuple[list[str], list[str]]:
    """Return the questions for RAG and the tasks for the agent."""
    if options.corpus is None:
        questions, tasks = [question.text for question in QUESTIONS], list(TASKS)
    else:
        titles = list(dict.fromkeys(passage.title for passage in passages))
        questions = [f"What does the text say about {title}?" for title in titles]
        tasks = [f"Find out what the text says about {title}, and sum it up." for title in titles]
    return list(islice(cycle(questions), options.n_questions)), list(islice(cycle(tasks), options.n_tasks))


def _with_progress(texts: Sequence[str], kind: str, say: Say) -> Iterator[str]:
    if texts:
        say(f"Asking {len(texts)} {kind} requests …")
    last_said = time.monotonic()
    for number, text in enumerate(texts):
        if time.monotonic() - last_said > PROGRESS_EVERY_S:
            say(f"  {number} of {len(texts)} {kind} requests are answered")
            last_said = time.monotonic()
        yield text


def _wait_for_engine_spans(file: Path, receiver: hotspan.receiver) -> None:
    # vLLM sends a request's span a moment after its answer; those of failed calls may never come.
    hotspan.flush(FLUSH_TIMEOUT_S)
    generation = hotspan.analyse(hotspan.load(file)).generation
    receiver.wait(lambda: receiver.n_by_name[ENGINE_SPAN] >= generation.n_attempts, ENGINE_SPANS_TIMEOUT_S)
