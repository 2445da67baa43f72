"""The engine over a running server, against one whose every byte the test writes."""

import json

import pytest
from servers import DONE, AwaitClose, ScriptedServer, answer, delta, event, message, stream, usage

import hotspan
from hotspan.pipelines.engines import server_engine
from hotspan.testing import capture

ASK = [{"role": "user", "content": "Why?"}]
MODELS = answer({"object": "list", "data": [{"id": "small"}, {"id": "large"}]})
VLLM_MODELS = answer({"object": "list", "data": [{"id": "small", "owned_by": "vllm"}]})
NOT_FOUND = answer({"error": {"message": "no such path"}}, "404 Not Found")


def test_the_first_model_is_taken_and_the_server_named():
    """Without a model the server's first; what it is called follows from what it says of itself."""
    with ScriptedServer([VLLM_MODELS, NOT_FOUND]) as server, server_engine(server.url) as engine:
        assert (engine.model, engine.name, engine.words_are_noise) == ("small", "vllm", False)
    with ScriptedServer([MODELS, NOT_FOUND]) as server, server_engine(f"{server.url}/v1/", "large") as engine:
        assert (engine.model, engine.name) == ("large", "openai-compatible")
        assert [request.target for request in server.requests] == ["/v1/models", "/tokenize"]


def test_a_stream_yields_text_and_is_one_generation_span():
    """Role and usage events are no text."""
    reply = stream(event(delta("", role="assistant")), event(delta("Hi")), event(delta("!", finish="stop")))
    reply[-1:-1] = stream(event(usage(3, 2)), DONE)[1:-1]
    with (
        ScriptedServer([MODELS, NOT_FOUND, reply]) as server,
        server_engine(server.url, "small") as engine,
        capture() as captured,
    ):
        assert list(engine.stream(ASK, max_tokens=7)) == ["Hi", "!"]
        sent = server.requests[-1].json

    assert (sent["max_tokens"], sent["stream"], sent["messages"]) == (7, True, ASK)
    assert captured.one("chat small").attributes["gen_ai.usage.output_tokens"] == 2


def test_a_schema_is_sent_as_a_strict_response_format():
    """The server is asked to hold the answer to the schema."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    with (
        ScriptedServer([MODELS, NOT_FOUND, answer(message('{"a": 1}'))]) as server,
        server_engine(server.url) as engine,
    ):
        assert json.loads(engine.complete(ASK, max_tokens=7, schema=schema)) == {"a": 1}
        sent = server.requests[-1].json["response_format"]

    assert sent["type"] == "json_schema"
    assert sent["json_schema"]["schema"] == schema
    assert sent["json_schema"]["strict"] is True


def test_tokens_are_counted_by_the_server_where_it_can():
    """VLLM's /tokenize answers with the count."""
    with ScriptedServer([VLLM_MODELS, answer({"count": 1}), answer({"count": 42})]) as server:
        with server_engine(server.url) as engine:
            assert (engine.counting, engine.count_tokens("some text")) == ("server", 42)
            assert server.requests[-1].json == {
                "model": "small",
                "prompt": "some text",
                "add_special_tokens": False,
            }


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(NOT_FOUND, id="no-such-path"),
        pytest.param(answer({"tokens": [1, 2]}), id="another-dialect"),
        pytest.param(answer(b"<html>"), id="no-json"),
    ],
)
def test_tokens_are_estimated_where_the_server_cannot_count(reply):
    """The engine says that it is an estimate; four bytes are one token, rounded up."""
    with ScriptedServer([MODELS, reply]) as server, server_engine(server.url) as engine:
        assert engine.counting == "estimate"
        assert [engine.count_tokens(text) for text in ("", "abcd", "abcde", "€€")] == [0, 1, 2, 2]


def test_the_api_key_goes_with_every_request():
    """Asking for models, counting and answering alike."""
    with ScriptedServer([MODELS, NOT_FOUND, answer(message())]) as server:
        with server_engine(server.url, api_key="secret") as engine:
            engine.complete(ASK, max_tokens=5)
        assert {request.headers["authorization"] for request in server.requests} == {"Bearer secret"}


def test_a_proxy_is_not_asked_for_this_machine(monkeypatch):
    """A proxy's settings in the environment do not keep a local server from being reached."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with ScriptedServer([MODELS, NOT_FOUND]) as server, server_engine(server.url) as engine:
        assert engine.model == "small"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        pytest.param(answer({"data": []}), "names no model", id="no-model"),
        pytest.param(answer({"oops": 1}), "not a list of models", id="other-json"),
        pytest.param(answer(b"<html>"), "not a list of models", id="no-json"),
        pytest.param(
            answer({}, "500 Internal Server Error"), r"answered 500 Internal Server Error\. ", id="500"
        ),
        pytest.param(
            answer({"error": {"message": "no key."}}, "401 Unauthorized"),
            r"answered 401 Unauthorized \(no key\)\. Give the server's key with --api-key",
            id="401",
        ),
        pytest.param(MODELS, "does not serve the model 'huge'. It serves: small, large", id="other-models"),
    ],
)
def test_a_server_that_cannot_be_used_is_one_sentence(reply, expected):
    """What was asked, what came, what to do."""
    with ScriptedServer([reply]) as server, pytest.raises(hotspan.EngineError, match=expected):
        server_engine(server.url, "huge")


def test_a_server_that_never_answers_is_not_waited_for(monkeypatch, capsys):
    """A port that accepts and says nothing: told what is asked, and soon that nothing comes."""
    monkeypatch.setattr("hotspan.pipelines.engines.server._FIRST_ANSWER_S", 0.1)
    with (
        ScriptedServer([[AwaitClose()]]) as server,
        pytest.raises(hotspan.EngineError, match="something listens there but does not answer"),
    ):
        server_engine(server.url)

    assert f"Asking {server.url}" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "nonsense", "http://[::1", "http://127.0.0.1:x"])
def test_an_address_without_a_server_is_one_sentence(address):
    """A closed port and a string that is no address are the same kind of error."""
    with pytest.raises(hotspan.EngineError, match=r"Start the server|Give one such as"):
        server_engine(address)
