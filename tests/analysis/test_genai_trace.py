"""A trace by the GenAI conventions across nine services, in Jaeger's JSON, of which five know no model."""

import json

import hotspan

EPOCH_US = 1_700_000_000_000_000


class Writer:
    """Writes the trace of an agent that asks models, searches and calls tools by other services."""

    def __init__(self):
        self.spans = []

    def span(self, service, name, parent=None, **said):
        """Write a span of a millisecond more than the ones before; return its id."""
        span_id = f"{len(self.spans) + 1:016x}"
        of_parent = [{"refType": "CHILD_OF", "traceID": "1", "spanID": parent}] if parent else []
        tags = [
            {"key": key.replace("__", "."), "type": "string", "value": value} for key, value in said.items()
        ]
        start = EPOCH_US + 1000 * len(self.spans)
        self.spans.append(
            {
                "traceID": "1",
                "spanID": span_id,
                "operationName": name,
                "references": of_parent,
                "startTime": start,
                "duration": 900_000 - 2000 * len(self.spans),
                "processID": service,
                "tags": tags,
            }
        )
        return span_id

    def chat(self, parent):
        """Write a model call and the request that it sends."""
        usage = {"gen_ai__usage__input_tokens": "1840", "gen_ai__usage__output_tokens": "260"}
        said = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "m", "span__kind": "client"}
        chat = self.span("agent", "chat m", parent, **said, **usage)
        self.span("agent", "POST /v1/messages", chat, http__request__method="POST", span__kind="client")

    def tool(self, parent, name):
        """Write a tool call and what a gateway and two more services do for it; return the gateway's span."""
        tool = self.span("agent", f"execute_tool {name}", parent, gen_ai__operation__name="execute_tool")
        gateway = self.span("gateway", "POST /mcp/tools/call", tool, http__request__method="POST")
        self.span("auth", "GET /validate", gateway, http__request__method="GET", span__kind="server")
        store = self.span("store", "GET /api/traces", gateway, http__request__method="GET")
        self.span("store", "search", store, db__system__name="elasticsearch", span__kind="client")
        return gateway

    def retrieval(self, parent):
        """Write a retrieval and the vector store's own span."""
        found = self.span("agent", "retrieval vector-search", parent, gen_ai__operation__name="retrieval")
        self.span("vectors", "SEARCH docs", found, db__system__name="qdrant", span__kind="server")


def test_a_models_calls_are_told_from_what_the_services_around_it_do(tmp_path):
    """5 model calls, 3 retrievals, 7 tool calls, 2 agents, one request; no transport, no other database."""
    writer = Writer()
    edge = writer.span("edge", "POST /api/graphql", http__request__method="POST", span__kind="server")
    query = writer.span("graphql", "Query.assistantReply", edge, span__kind="server")
    writer.span("graphql", "graphql.execution", query)
    said = {"gen_ai__operation__name": "invoke_agent", "span__kind": "server"}
    agent = writer.span("agent", "invoke_agent triage", query, **said, gen_ai__agent__name="triage")
    for _ in range(3):
        writer.chat(agent)
        writer.tool(agent, "list_dashboards")
        writer.tool(agent, "search_traces")
        writer.retrieval(agent)
    gateway = writer.tool(agent, "summarize")
    inner = writer.span("summarizer", "invoke_agent sum", gateway, **said, gen_ai__agent__name="sum")
    writer.chat(inner)
    writer.chat(agent)
    services = {span["processID"] for span in writer.spans}
    trace = {
        "traceID": "1",
        "spans": writer.spans,
        "processes": {name: {"serviceName": name} for name in services},
    }
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"data": [trace]}), encoding="utf-8")

    report = hotspan.analyse(hotspan.load(path))

    assert {row.stage: row.n_calls for row in report.stages} == {
        "request": 1,
        "agent": 2,
        "generation": 5,
        "tool": 7,
        "retrieval": 3,
    }
    assert report.generation.tokens.prompt == 5 * 1840
