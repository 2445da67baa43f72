"""The requests of one `vllm.LLM`: begun where the engine takes them, ended at the step that finishes them.

generate │ add_request  add_request   step   step   step   step │
prompt 1 └─ |------------------------------------------|        │
prompt 2               └─ |-----------------------|             │
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from hotspan.tracer import clock, config, semconv
from hotspan.tracer.clients.local_call import LocalCall, start_generation
from hotspan.tracer.clients.vllm_output import (
    ABORTED,
    ENGINE,
    account,
    content,
    request_attributes,
    times_of_whole,
    trace_headers,
    usage_of,
)
from hotspan.tracer.faults import fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Method = Callable[..., Any]

# Methods of `LLM` by which requests come in or are waited for -> what they ask for.
_FRONT: Final = {
    "generate": "text_completion",
    "enqueue": "text_completion",
    "chat": "chat",
    "enqueue_chat": "chat",
    "wait_for_completion": None,
}
_BEFORE_HEADERS: Final = 3  # positional arguments of `add_request` up to the parameters


class Requests:
    """The requests of one `LLM` that have not ended.

    Args:
        model: The model's name.

    Attributes:
        front: What traces the methods of the `LLM`.
        engine: What traces the methods of its engine.
    """

    def __init__(self, model: str) -> None:
        self.front: Mapping[str, Callable[[Method], Method]] = {
            name: self._front(operation) for name, operation in _FRONT.items()
        }
        self.engine: Mapping[str, Callable[[Method], Method]] = {
            "add_request": self._add_request,
            "step": self._step,
        }
        self._model = model
        self._operation: str | None = None  # of the method that is running; None: its requests are not ours
        self._open: dict[str, LocalCall] = {}
        self._n_begun = 0

    # --- Methods ------------------------------------------------------------------------------------------

    def _front(self, operation: str | None) -> Callable[[Method], Method]:
        def wrap(original: Method) -> Method:
            def method(llm: Any, /, *args: Any, **kwargs: Any) -> Any:
                with self._under(operation, args, kwargs):
                    return original(llm, *args, **kwargs)

            return method

        return wrap

    @contextmanager
    def _under(self, operation: str | None, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[None]:
        outer, self._operation = self._operation, operation
        before = set() if operation is None else set(self._open)  # enqueued, and still waited for
        n_begun = self._n_begun
        try:
            yield
        except BaseException as exc:
            self._end_by(exc, self._open.keys() - before)
            if operation is not None:
                try:
                    self._refuse(exc, n_prompts(operation, args, kwargs), self._n_begun - n_begun)
                except Exception as own:  # noqa: BLE001 - the user gets his exception, not ours
                    fault(own)
            raise
        finally:
            self._operation = outer

    def _refuse(self, exc: BaseException, n_given: int, n_begun: int) -> None:
        """Leave a failed call for each prompt that the engine never had: the refused one, and the rest."""
        for _ in range(max(n_given, 1) - n_begun):
            if (call := self._start(None)) is not None:
                call.end_by(exc)

    def _add_request(self, original: Method) -> Method:
        def add_request(engine: Any, request_id: Any, /, *args: Any, **kwargs: Any) -> Any:
            call = self._begin(request_id, args[1] if len(args) > 1 else kwargs.get("params"))
            if call is None:
                return original(engine, request_id, *args, **kwargs)
            headers = trace_headers(engine, call.span)
            if headers is not None and len(args) < _BEFORE_HEADERS:
                kwargs.setdefault("trace_headers", headers)
            try:
                return original(engine, request_id, *args, **kwargs)
            except BaseException as exc:
                self._end_by(exc, {request_id})
                raise

        return add_request

    def _step(self, original: Method) -> Method:
        def step(engine: Any, /, *args: Any, **kwargs: Any) -> Any:
            try:
                outputs = original(engine, *args, **kwargs)
            except Exception as exc:
                self._end_by(exc, set(self._open))  # the engine has failed, not one of its requests
                raise
            if self._open:
                self._take(outputs)
            return outputs

        return step

    # --- Requests -----------------------------------------------------------------------------------------

    def _begin(self, request_id: str, params: Any) -> LocalCall | None:
        call = self._start(params)
        if call is not None:
            self._open[request_id] = call
        return call

    def _start(self, params: Any) -> LocalCall | None:
        if self._operation is None or not config.recording():
            return None
        try:
            request = request_attributes(params, stream=False)
            call = LocalCall(start_generation(ENGINE, self._operation, self._model, request))
        except Exception as own:  # noqa: BLE001 - the request is made, traced or not
            fault(own)
            return None
        self._n_begun += 1
        return call

    def _take(self, outputs: Any) -> None:
        for output in outputs:
            if output.finished and (call := self._open.pop(output.request_id, None)) is not None:
                try:
                    _finish(call, output)
                except Exception as own:  # noqa: BLE001 - the user gets the output, whatever we make of it
                    fault(own)

    def _end_by(self, exc: BaseException, ids: set[str]) -> None:
        """End what an exception has left unfinished: vLLM has given it up, or nobody waits for it."""
        for request_id in [known for known in self._open if known in ids]:
            self._open.pop(request_id).end_by(exc)


def n_prompts(operation: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
    """Return how many prompts a call has, as vLLM tells one from several; 0 where that cannot be told.

    Args:
        operation: "chat", the prompts of which are lists of messages, or "text_completion".
        args: Arguments by place.
        kwargs: Arguments by name.
    """
    given = args[0] if args else kwargs.get("messages" if operation == "chat" else "prompts")
    if operation != "chat" and isinstance(given, (str, bytes, dict)):
        return 1
    if not isinstance(given, Sequence):
        return 0
    part = dict if operation == "chat" else int  # a message; a token
    return 1 if given and all(isinstance(one, part) for one in given) else len(given)


def _finish(call: LocalCall, output: Any) -> None:
    end_ns = clock.now_ns()
    answers = output.outputs
    reasons = [answer.finish_reason for answer in answers]
    call.tokens.read_whole({
        "choices": [
            {"index": answer.index, "finish_reason": reason}
            for answer, reason in zip(answers, reasons, strict=True)
        ],
        "usage": usage_of(output, sum(len(answer.token_ids) for answer in answers)),
    })  # fmt: skip
    call.details = {
        **account(output.metrics),
        **times_of_whole(output.metrics, end_ns - call.span.start_ns, len(answers)),
        **content(output.prompt, ((answer.text, answer.finish_reason) for answer in answers)),
    }
    call.end(outcome=semconv.CANCELLED if ABORTED in reasons else None, end_ns=end_ns)
