"""The demo: both reference pipelines on one engine, traced into a file.

Everything that happens once (loading models, the index, the first call of each kind) happens before tracing
is switched on, so that the file holds what a warm service does.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import hotspan
from hotspan.pipelines.agent import Agent
from hotspan.pipelines.corpus import load_corpus
from hotspan.pipelines.embedder import Embedder
from hotspan.pipelines.engines import embedded_engine, server_engine, vllm_engine
from hotspan.pipelines.engines.optional import need
from hotspan.pipelines.engines.server import ServerEngine
from hotspan.pipelines.engines.vllm_server import require_vllm
from hotspan.pipelines.index import open_index
from hotspan.pipelines.quality import Quality, measure
from hotspan.pipelines.questions import QUESTIONS, TASKS
from hotspan.pipelines.rag import Rag, Retriever
from hotspan.pipelines.rerank import CrossEncoderReranker, LateInteraction
from hotspan.pipelines.tools import corpus_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hotspan.pipelines.corpus import Passage
    from hotspan.pipelines.engines import Engine
    from hotspan.pipelines.rerank import Reranker

    Say = Callable[[str], None]

SERVICE: Final = "hotspan-demo"
ENGINE_SPAN: Final = "llm_request"  # what vLLM calls the span of one request
ENGINE_SPANS_TIMEOUT_S: Final = 10.0
FLUSH_TIMEOUT_S: Final = 10.0
PROGRESS_EVERY_S: Final = 5.0
SAMPLE_EVERY_S: Final = 0.5
TRACE_FILE_STARTS: Final = (b'{"resourceSpans"', b'{"resourceMetrics"')


@dataclass(frozen=True, slots=True)
class Options:
    """What to run, and on what."""

    file: Path
    """The trace file; an older one is replaced."""
    n_questions: int = 10
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
class Work:
    """Requests of one kind."""

    kind: str
    answer: Callable[[str], str]
    texts: Sequence[str]


def run(options: Options, say: Say) -> Outcome:
    """Run the demo.

    Args:
        options: What to run.
        say: Told, in one line each, what takes long right now.

    Raises:
        hotspan.HotspanError: Something that was asked for cannot be used, or the engine failed.  What was
            recorded until then is in the file, and the message says so.
    """
    check_options(options)
    check_file(options.file)
    if options.engine == "vllm":
        require_vllm()
    hotspan.configure(otlp=options.otlp, sample_ratio=0.0)  # until everything is warm; checks `otlp` now
    with ExitStack() as stack:
        # What fails at once comes first: a running server is asked before models load, one is started last.
        passages = load_corpus(options.corpus)
        server = stack.enter_context(_running_server(options)) if options.base_url else None
        retriever, quality = _open_retriever(options, passages, stack, say)
        receiver = stack.enter_context(hotspan.receiver()) if options.engine == "vllm" else None
        engine = server or stack.enter_context(_start_engine(options, receiver))
        agent = stack.enter_context(Agent(engine, corpus_tools(retriever)))
        rag = Rag(engine, retriever)
        _warm_up(options, rag, agent, say)
        work = [
            Work("RAG", rag.answer, _first(options.n_questions, _questions(options, passages))),
            Work("agent", agent.answer, _first(options.n_tasks, _tasks(options, passages))),
        ]
        flushed = _traced(options, work, engine, receiver, say)
    return Outcome(len(passages), quality, engine.words_are_noise, flushed)


def check_options(options: Options) -> None:
    """See that the options agree with one another.

    Raises:
        hotspan.ConfigurationError: They do not.
    """
    if options.n_questions + options.n_tasks < 1:
        msg = "There is nothing to run: ask for at least one of --questions and --agent-requests."
        raise hotspan.ConfigurationError(msg)
    if options.base_url is not None and not options.base_url.strip():
        msg = "--base-url is empty. Give a server's address, such as http://127.0.0.1:8000, or leave it out."
        raise hotspan.ConfigurationError(msg)
    if options.engine == "vllm" and options.base_url is not None:
        msg = "--engine vllm starts a server, --base-url uses one that runs: give one of them."
        raise hotspan.ConfigurationError(msg)


def check_file(file: Path) -> None:
    """See that the trace file may be written, and that what it would replace is a trace file too.

    Raises:
        hotspan.ConfigurationError: It may not, or it is not.
    """
    if file == Path() or file.is_dir():
        msg = f"--file {str(file)!r} is a folder. Give a path of a file, such as hotspan-demo.jsonl."
        raise hotspan.ConfigurationError(msg)
    is_new = not file.exists()
    if not is_new and not file.is_file():
        msg = f"{file}: is no regular file, and the demo reads back what it wrote. Give --file another path."
        raise hotspan.ConfigurationError(msg)
    try:
        with file.open("ab+") as opened:
            opened.seek(0)
            start = opened.read(max(map(len, TRACE_FILE_STARTS)))
        if is_new:
            file.unlink()
    except OSError as exc:
        msg = f"{file}: cannot be written ({exc.strerror}). Give --file a path in a folder that is there."
        raise hotspan.ConfigurationError(msg) from exc
    if start and not start.startswith(TRACE_FILE_STARTS):
        msg = f"{file}: is not a trace file, and the demo would replace it. Give --file another path."
        raise hotspan.ConfigurationError(msg)


def _running_server(options: Options) -> Engine:
    return server_engine(options.base_url or "", options.model, api_key=options.api_key)


def _start_engine(options: Options, receiver: hotspan.receiver | None) -> Engine:
    if receiver is None:
        return embedded_engine(options.model)
    return vllm_engine(options.model, otlp_endpoint=receiver.endpoint)


def _open_retriever(
    options: Options, passages: Sequence[Passage], stack: ExitStack, say: Say
) -> tuple[Retriever, Quality | None]:
    say("Loading the embedding model …")
    embedder = Embedder(options.embedding_model)
    index = open_index(passages, embedder, say)  # on all cores, where it is built
    _use_one_thread(options, stack)
    reranker: Reranker = LateInteraction(index, embedder.name)
    if options.cross_encoder is not None:
        reranker = CrossEncoderReranker(options.cross_encoder)
    quality = measure(QUESTIONS, index, embedder, reranker) if options.corpus is None else None
    return Retriever(index, embedder, reranker), quality


def _use_one_thread(options: Options, stack: ExitStack) -> None:
    # The default models are too small to share: a second thread gains nothing, and where an engine or another
    # program uses the same cores, threads wait for each other many times longer than they compute.
    has_large_model = options.engine == "embedded" and options.base_url is None and options.model is not None
    if has_large_model or options.embedding_model is not None or options.cross_encoder is not None:
        return
    torch = need("torch", what="The demo")
    stack.callback(torch.set_num_threads, torch.get_num_threads())
    torch.set_num_threads(1)


def _warm_up(options: Options, rag: Rag, agent: Agent, say: Say) -> None:
    say("Warming up: the first call of each kind is not traced …")
    if options.n_questions:
        rag.answer(QUESTIONS[0].text)
    if options.n_tasks:
        agent.warm_up()


def _questions(options: Options, passages: Sequence[Passage]) -> list[str]:
    if options.corpus is None:
        return [question.text for question in QUESTIONS]
    return [f"What does the text say about {title}?" for title in _titles(passages)]


def _tasks(options: Options, passages: Sequence[Passage]) -> list[str]:
    if options.corpus is None:
        return list(TASKS)
    return [f"Find out what the text says about {title}, and sum it up." for title in _titles(passages)]


def _titles(passages: Sequence[Passage]) -> list[str]:
    return list(dict.fromkeys(passage.title for passage in passages))


def _first(n: int, texts: Sequence[str]) -> list[str]:
    return list(islice(cycle(texts), n))


def _traced(
    options: Options, work: Sequence[Work], engine: Engine, receiver: hotspan.receiver | None, say: Say
) -> hotspan.FlushResult:
    """Do the work with tracing switched on; whatever happens, what was recorded is in the file."""
    if options.file.exists() and options.file.stat().st_size:
        say(f"Replacing the trace file {options.file} of an earlier run.")
    options.file.write_bytes(b"")
    hotspan.configure(service_name=SERVICE, file=options.file, otlp=options.otlp)
    try:
        with _sampling(engine):
            _ask_everything(work, options.file, say)
        if receiver is not None:
            _wait_for_engine_spans(options.file, receiver)
    finally:
        flushed = hotspan.shutdown(FLUSH_TIMEOUT_S)
    return flushed


def _sampling(engine: Engine) -> AbstractContextManager[object]:
    # Of the servers that speak the OpenAI API, this one is known to have metrics unless it is told not to.
    if isinstance(engine, ServerEngine) and engine.name == "vllm":
        return hotspan.sample_engine(engine.base_url, interval_s=SAMPLE_EVERY_S)
    return nullcontext()


def _ask_everything(work: Sequence[Work], file: Path, say: Say) -> None:
    n_answered = 0
    try:
        for part in work:
            for text in _with_progress(part, say):
                part.answer(text)
                n_answered += 1
    except hotspan.EngineError as exc:
        msg = f"{exc}\n{_kept(n_answered, file)}"
        raise hotspan.EngineError(msg) from exc
    except KeyboardInterrupt:
        say(f"Interrupted. {_kept(n_answered, file)}")
        raise


def _kept(n_answered: int, file: Path) -> str:
    requests = "1 whole request" if n_answered == 1 else f"{n_answered} whole requests"
    return f"What was recorded until then, {requests} and the broken one, is in {file}."


def _with_progress(part: Work, say: Say) -> Iterator[str]:
    n_texts, was_said = len(part.texts), False
    if n_texts:
        say(f"Asking {_counted(n_texts, part.kind)} …")
    last_said = time.monotonic()
    for number, text in enumerate(part.texts):
        if time.monotonic() - last_said > PROGRESS_EVERY_S:
            say(f"  answered {number} of {_counted(n_texts, part.kind)}")
            last_said, was_said = time.monotonic(), True
        yield text
    if was_said:
        say(f"  answered {n_texts} of {_counted(n_texts, part.kind)}")


def _counted(n: int, kind: str) -> str:
    return f"{n} {kind} request{'' if n == 1 else 's'}"


def _wait_for_engine_spans(file: Path, receiver: hotspan.receiver) -> None:
    # vLLM sends a request's span a moment after its answer; those of failed calls may never come.
    hotspan.flush(FLUSH_TIMEOUT_S)
    n_calls = hotspan.analyse(hotspan.load(file)).generation.n_attempts
    receiver.wait(lambda: receiver.n_by_name[ENGINE_SPAN] >= n_calls, ENGINE_SPANS_TIMEOUT_S)
