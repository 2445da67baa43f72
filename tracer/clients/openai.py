"""`trace_openai`: an openai client of the user's own, each of its model calls traced.

Everything that the client sends passes through its `request`, whichever method, helper or raw response the
user calls; that one method is wrapped, on the object itself, and so is `send` of its HTTP client, through
which every attempt passes.  Types, arguments and results stay the client's.
"""

from __future__ import annotations

import copy
import functools
import importlib.util
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hotspan.tracer.clients.openai_call import OpenAICall, active, method_of, wants_raw
from hotspan.tracer.errors import ConfigurationError, MissingDependencyError
from hotspan.tracer.faults import fault

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["trace_openai"]

C = TypeVar("C")

_MARK: Final = "hotspan_tracing"  # on what was put in the place of a method


class _Tracing:
    """What is asked of the calls of one client."""

    def __init__(self, client: Any, *, is_async: bool, usage: bool) -> None:
        self.client = client
        self.is_async = is_async
        self.usage = usage

    def begin(self, options: Any) -> tuple[OpenAICall | None, Any]:
        """Return the call that a request is, None for one that is not traced, and the options to send."""
        try:
            method = method_of(options)
            if method is None:
                return None, options
            body = _body(options)
            hide_usage = self.usage and _adds_usage(options, body)
            call = OpenAICall(method, self.client, body, is_async=self.is_async, hide_usage=hide_usage)
            call.start()
        except Exception as own:  # noqa: BLE001 - the user's call is made, traced or not
            fault(own)
            return None, options
        if not call.is_traced:
            return None, options
        return call, _with_usage(options, body) if hide_usage else options


def _body(options: Any) -> dict[str, Any]:
    """Return the fields of the request's JSON object, those of `extra_body` included."""
    parts = (options.json_data, getattr(options, "extra_json", None))
    return {name: value for part in parts if isinstance(part, Mapping) for name, value in part.items()}


def _adds_usage(options: Any, body: dict[str, Any]) -> bool:
    """Return whether usage is to be asked for: of a streamed chat, the chunks of which pass through us."""
    asked = body.get("stream_options") or {}
    return bool(
        body.get("stream") and "messages" in body and "include_usage" not in asked and not wants_raw(options)
    )


def _with_usage(options: Any, body: dict[str, Any]) -> Any:
    changed = copy.copy(options)
    asked = body.get("stream_options") or {}
    changed.json_data = {**options.json_data, "stream_options": {**asked, "include_usage": True}}
    return changed


def trace_openai(client: C, *, usage: bool = False) -> C:
    """Trace the model calls of an openai client, and return the same client.

    Chat, completions, responses and embeddings are traced, streamed or not, also through `parse`, `stream`,
    `with_raw_response` and `with_streaming_response`; whatever else the client does is left alone.  Each call
    is one span, its HTTP attempts are counted (the client retries silently), and `traceparent` is sent along.
    What `copy` and `with_options` return is traced as well.  Tracing a client again changes nothing.

    Args:
        client: An `openai.OpenAI`, `AsyncOpenAI`, `AzureOpenAI` or `AsyncAzureOpenAI`, of versions 1 to 3.
        usage: Ask for token counts at the end of streamed chats, where the caller does not; the further chunk
            that comes of it is not shown.  By default requests are sent as they are, and tokens are counted
            by chunks where a server does not say.

    Raises:
        ConfigurationError: `client` is no client of the openai package.
        MissingDependencyError: The openai package is not installed.

    Example:
        `client = hotspan.trace_openai(openai.OpenAI())`
    """
    is_async = _is_async(client)
    owner: Any = client
    tracing = getattr(owner.request, _MARK, None)
    if tracing is not None:
        tracing.usage = tracing.usage or usage
        return client
    tracing = _Tracing(client, is_async=is_async, usage=usage)
    wrap_request, wrap_send = (_async_request, _async_send) if is_async else (_request, _send)
    owner.request = _marked(wrap_request(owner.request, tracing), tracing)
    owner.copy = owner.with_options = _copy(owner.copy, tracing)
    http = _http_client(owner)
    if http is not None and not hasattr(http.send, _MARK):  # copies of a client share it
        http.send = _marked(wrap_send(http.send), True)
    return client


def _http_client(client: Any) -> Any:
    """Return the client's HTTP client, None if it has none under the name that it has had since version 1.0.

    No public name has it.  Without it calls are traced by what they return: attempts are not told apart, and
    chunks are stamped where the client hands them out.
    """
    http = getattr(client, "_client", None)
    return http if hasattr(http, "send") else None


def _is_async(client: object) -> bool:
    openai: Any = sys.modules.get("openai")
    if openai is None and importlib.util.find_spec("openai") is None:
        msg = "trace_openai needs the openai package: pip install openai, or the extra: 'hotspan[openai]'"
        raise MissingDependencyError(msg)
    if isinstance(client, getattr(openai, "AsyncOpenAI", ())):
        return True
    if isinstance(client, getattr(openai, "OpenAI", ())):
        return False
    msg = f"trace_openai({client!r}): expected an openai.OpenAI or AsyncOpenAI client (openai 1 or newer)"
    raise ConfigurationError(msg)


def _marked(function: Any, mark: object) -> Any:
    setattr(function, _MARK, mark)
    return function


def _copy(copy_client: Callable[..., Any], tracing: _Tracing) -> Callable[..., Any]:
    @functools.wraps(copy_client)
    def traced(*args: Any, **kwargs: Any) -> Any:
        return trace_openai(copy_client(*args, **kwargs), usage=tracing.usage)

    return traced


# --- Blocking ----------------------------------------------------------------------------------------------


def _request(request: Callable[..., Any], tracing: _Tracing) -> Callable[..., Any]:
    @functools.wraps(request)
    def traced(cast_to: Any, options: Any, *args: Any, **kwargs: Any) -> Any:
        call, options = tracing.begin(options)
        if call is None:
            return request(cast_to, options, *args, **kwargs)
        token, current = active.set(call), call.enter()
        try:
            result = request(cast_to, options, *args, **kwargs)
        except BaseException as exc:
            call.end_by(exc)
            raise
        finally:
            call.leave(current)
            active.reset(token)
        _adopt(call, result)
        return result

    return traced


def _send(send: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(send)
    def traced(request: Any, *args: Any, **kwargs: Any) -> Any:
        call = active.get()
        if call is None:
            return send(request, *args, **kwargs)
        _prepare(call, request)
        try:
            response = send(request, *args, **kwargs)
        except BaseException as exc:
            call.unanswered(exc)
            raise
        _take(call, response)
        return response

    return traced


# --- Asynchronous ------------------------------------------------------------------------------------------


def _async_request(request: Callable[..., Any], tracing: _Tracing) -> Callable[..., Any]:
    @functools.wraps(request)
    async def traced(cast_to: Any, options: Any, *args: Any, **kwargs: Any) -> Any:
        call, options = tracing.begin(options)
        if call is None:
            return await request(cast_to, options, *args, **kwargs)
        token, current = active.set(call), call.enter()
        try:
            result = await request(cast_to, options, *args, **kwargs)
        except BaseException as exc:
            call.end_by(exc)
            raise
        finally:
            call.leave(current)
            active.reset(token)
        _adopt(call, result)
        return result

    return traced


def _async_send(send: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(send)
    async def traced(request: Any, *args: Any, **kwargs: Any) -> Any:
        call = active.get()
        if call is None:
            return await send(request, *args, **kwargs)
        _prepare(call, request)
        try:
            response = await send(request, *args, **kwargs)
        except BaseException as exc:
            call.unanswered(exc)
            raise
        _take(call, response)
        return response

    return traced


# --- Our own faults are not the user's ---------------------------------------------------------------------


def _guarded(step: Callable[[OpenAICall, Any], None]) -> Callable[[OpenAICall, Any], None]:
    def guarded(call: OpenAICall, subject: Any) -> None:
        try:
            step(call, subject)
        except Exception as own:  # noqa: BLE001 - the user's call goes on, whatever we make of it
            fault(own)

    return guarded


_prepare = _guarded(OpenAICall.prepare)
_take = _guarded(OpenAICall.take)
_adopt = _guarded(OpenAICall.adopt)
