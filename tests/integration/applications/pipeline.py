"""A small RAG and agent program, traced by another library alone; the model server is a script.

    python pipeline.py traced_by_{…} MODEL_URL TRACES_URL

Two questions are answered from retrieved documents, a third one needs an agent with two tools, and of a
fourth one the model call fails.  The library sends its spans to TRACES_URL.
"""

import http.client
import importlib
import json
import sys

DOCUMENTS = ["A kettle boils water.", "A toaster browns bread.", "A fridge keeps milk cold."]
NOWHERE = "http://127.0.0.1:9/v1"


class Pipeline:
    """The program; `mark(kind, name)` is what the library decorates a function of that kind with."""

    def __init__(self, mark, client, broken, url):
        self.client, self.broken, self.url = client, broken, url
        self.embed = lambda text: client.embeddings.create(model="tiny-embed", input=text)
        self.retrieve = mark("retrieval", "retrieve")(self._retrieve)
        self.rerank = mark("rerank", "rerank")(self._rerank)
        self.search = mark("tool", "search")(lambda query: DOCUMENTS[len(query) % 3])
        self.calculate = mark("tool", "calculate")(lambda x: str(2 * x))
        self.answer = mark("request", "answer")(self._answer)
        self.assist = mark("agent", "assistant")(self._assist)

    def _retrieve(self, question):
        self.embed(question)
        return DOCUMENTS

    def _rerank(self, question, documents):
        body = json.dumps({"query": question, "documents": documents}).encode()
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=10)
        connection.request("POST", "/v1/rerank", body, {"content-type": "application/json"})
        results = json.load(connection.getresponse())["results"]
        connection.close()
        return [documents[ranked["index"]] for ranked in results]

    def _answer(self, question, *, fails):
        documents = self.rerank(question, self.retrieve(question))
        client = self.broken if fails else self.client
        messages = [{"role": "user", "content": "\n".join([*documents, question])}]
        asked = {"stream": True, "stream_options": {"include_usage": True}}
        chunks = client.chat.completions.create(model="tiny", messages=messages, **asked)
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)

    def _assist(self, question):
        messages = [{"role": "user", "content": question}]
        for tools in (["search"], ["calculate", "calculate"], []):
            said = self.client.chat.completions.create(model="tiny", messages=messages).choices[0].message
            messages.append({"role": "assistant", "content": said.content})
            for tool in tools:
                found = self.search("milk") if tool == "search" else self.calculate(2)
                messages.append({"role": "user", "content": found})
        return messages[-1]["content"]


def main(module, model_url, traces_url):
    """Run the program once, and send what the library has of it."""
    library = importlib.import_module(module)
    mark, make = library.set_up(traces_url)
    broken = make(base_url=NOWHERE, api_key="none", max_retries=0)
    pipeline = Pipeline(mark, make(base_url=f"{model_url}/v1", api_key="none"), broken, model_url)
    pipeline.answer("What boils water?", fails=False)
    pipeline.answer("What browns bread?", fails=False)
    pipeline.assist("How cold is twice the milk?")
    try:
        pipeline.answer("What keeps milk cold?", fails=True)
    except Exception as error:  # noqa: BLE001 - each client library wraps it in a type of its own
        sys.stdout.write(type(error).__name__)
    library.finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
