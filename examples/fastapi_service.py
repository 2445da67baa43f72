"""An async service that streams its answers: tasks, threads and streams need nothing but the decorators.

    python examples/fastapi_service.py 8000               # needs fastapi and uvicorn
    curl -N 'http://127.0.0.1:8000/answer?q=What+does+the+nonlocal+statement+do'
    hotspan report service.jsonl                          # at any time: the file grows as the service runs

A request lasts from the first line of `answer` to the last piece that went out, long after the endpoint has
returned.  A client that hangs up makes it `cancelled` or `abandoned`, not an error.
"""

import asyncio
import sys

import rag_script_before as rag
import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

import hotspan

app = FastAPI()
INDEX = rag.embed(rag.PASSAGES)


@hotspan.embedding(model="tf-idf")
async def embed(question):
    return (await asyncio.to_thread(rag.embed, [question]))[0]


@hotspan.retrieval("numpy", top_k=20)
def retrieve(vector):
    return rag.retrieve(vector, INDEX)


@hotspan.generation(model="word-triples")
async def generate(prompt):
    for piece in rag.generate(prompt):
        await asyncio.sleep(0)  # as a client of a model server would: other requests have their turn
        yield piece


@hotspan.request("answer")
async def answer(question):
    vector = await embed(question)
    passages = await asyncio.to_thread(retrieve, vector)  # another thread, and still below this request
    with hotspan.rerank(model="bm25") as span:
        passages = rag.rerank(question, passages)
        span.set("documents", len(passages))
    with hotspan.context_assembly():
        prompt = rag.assemble(question, passages)
    async for piece in generate(prompt):
        yield piece


@app.get("/answer")
async def endpoint(q: str):
    return StreamingResponse(answer(q), media_type="text/plain")


if __name__ == "__main__":
    hotspan.configure(service_name="fastapi-service", file="service.jsonl")
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
