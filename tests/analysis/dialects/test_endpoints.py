"""What a client's request was for, by the end of the address that it was sent to."""

import pytest

from hotspan.analysis.dialects.transport import endpoint_stage
from hotspan.tracer.record import SpanRecord


@pytest.mark.parametrize(
    ("path", "stage"),
    [
        ("/v1/chat/completions", "generation"),
        ("/v1/messages", "generation"),
        ("/v1/responses", "generation"),
        ("/api/chat", "generation"),
        ("/v2/chat", "generation"),
        ("/v2/embed", "embedding"),
        ("/v2/rerank", "rerank"),
        ("/api/embeddings", "embedding"),
        ("/generate", "generation"),
        ("/generate_stream", "generation"),
        ("/completion", "generation"),
        ("/model/anthropic.claude-3-haiku-20240307-v1%3A0/converse", "generation"),
        ("/model/anthropic.claude-3-haiku-20240307-v1%3A0/converse-stream", "generation"),
        ("/model/meta.llama3-8b-instruct-v1:0/invoke", "generation"),
        ("/model/meta.llama3-8b-instruct-v1:0/invoke-with-response-stream", "generation"),
        ("/model/amazon.titan-embed-text-v2%3A0/invoke", "embedding"),
        ("/model/cohere.rerank-v3-5:0/invoke", "rerank"),
        ("/v1beta/models/gemini-2.0-flash:generateContent", "generation"),
        ("/v1beta/models/gemini-2.0-flash:streamGenerateContent?alt=sse", "generation"),
        ("/v1beta/models/gemini-embedding-001:embedContent", "embedding"),
        ("/v1beta/models/gemini-embedding-001:batchEmbedContents", "embedding"),
        ("/v1beta/models/gemini-2.0-flash:countTokens", None),
        ("/chat", None),
        ("/model/summary", None),
    ],
)
def test_the_end_of_an_address_tells_what_was_asked_for(path, stage):
    """Of the servers' own interfaces, and of what others took over from them."""
    url = {"http.request.method": "POST", "url.full": f"http://h/prefix{path}"}

    assert endpoint_stage(SpanRecord("1", "1", None, "POST", 0, 9, url, "client")) == stage


@pytest.mark.parametrize("end", ["?x=1", "/", "#stream", "/?x=1#stream"])
def test_what_follows_the_path_is_left_out(end):
    """Mistral's SDK puts `#stream` behind the address."""
    url = {"http.method": "POST", "http.url": f"http://h/v1/chat/completions{end}"}

    assert endpoint_stage(SpanRecord("1", "1", None, "POST", 0, 9, url, "client")) == "generation"
