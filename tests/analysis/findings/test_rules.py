"""Every rule on three runs: one that it speaks about, one that nearly is, and one where it would be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_traces import Call, answer, engine, many, request

from hotspan.analysis import analyse
from hotspan.tracer import semconv
from hotspan.tracer.record import Event, Trace

N = 25


def served(number, *, queue=0.0, prefill=20.0, decode=200.0, rest=0.0, duration=1000.0, **tokens):  # noqa: PLR0913 - a recipe
    """A request whose model call an engine accounts for, and `rest` ms of retrieval before it."""
    wait = queue + prefill
    call = answer(rest, rest + wait + decode, ttft=wait, last=wait + decode, **tokens)
    end = rest + wait + decode
    before = [Call("retrieval", "search", 0, rest)] if rest else []
    return request(number, max(duration, end), *before, call, engine(queue, prefill, decode))


def staged(number, **ms):
    """A request whose stages follow each other."""
    calls, cursor = [], 0
    for stage, duration in ms.items():
        calls.append(Call(stage, stage, cursor, cursor + duration))
        cursor += duration
    return request(number, cursor, *calls)


def refused(status, number=1):
    """The event of an attempt that failed."""
    return Event(semconv.ATTEMPT_EVENT, 0, {semconv.ATTEMPT_NUMBER: number, semconv.HTTP_STATUS: status})


def retried(number, *, status=None, backoff=300, error=None):
    """A request whose model call needed two attempts."""
    why = {semconv.HTTP_STATUS: status} if status else {semconv.ERROR_TYPE: error or "ReadTimeout"}
    event = Event(semconv.ATTEMPT_EVENT, 0, {semconv.ATTEMPT_NUMBER: 1, **why})
    said = {semconv.ATTEMPTS: 2, semconv.BACKOFF_NS: backoff * 1_000_000}
    return request(number, 1000, answer(0, 1000, attributes=said, events=(event,)))


def plain(number):
    """A request with one model call about which nothing is known."""
    return request(number, 1000, answer(0, 1000))


def ended(number, outcome):
    """A request whose model call ended in some way."""
    return request(number, 1000, answer(0, 1000, attributes={semconv.OUTCOME: outcome}))


def row(number, stage, name, n, each=100, *, pause=0, attributes=None, after=0):  # noqa: PLR0913 - a recipe
    """A request with `n` calls one after the other."""
    calls = [
        Call(
            stage,
            name,
            k * (each + pause),
            k * (each + pause) + each,
            dict(attributes(k)) if attributes else {},
        )
        for k in range(n)
    ]
    return request(number, n * (each + pause) + after, *calls)


def agent(number, prompts, *, each=200, cached=None, prefill=None):
    """An agent run whose model calls have these prompts, a tool between any two."""
    calls = [Call("agent", "agent", 0, len(prompts) * (each + 10))]
    for k, prompt in enumerate(prompts):
        start = k * (each + 10)
        name = f"chat {k}"
        calls.append(
            answer(
                start,
                start + each,
                ttft=each / 2,
                last=each,
                prompt=prompt,
                output=10,
                cached=None if cached is None else round(prompt * cached),
                inside="agent",
                name=name,
            )
        )
        if prefill is not None:
            calls.append(engine(each / 2 - prefill, prefill, each / 2, inside=name))
        calls.append(Call("tool", f"look up {k}", start + each, start + each + 10, inside="agent"))
    return request(number, len(prompts) * (each + 10), *calls)


def loaded(tpot_of, *, model_of=lambda _users: "m", n=30, flip=False):
    """Bursts of 1, 4 and 8 model calls at once; `tpot_of(users, k)` is the ms that a token takes."""
    found, number = [], 0
    for burst in range(n):
        users = (1, 4, 8)[burst % 3]
        for k in range(users):
            number += 1
            tpot = tpot_of(1 if flip and k % 2 else users, k)
            call = answer(0, 50 + 20 * tpot, ttft=50, last=50 + 20 * tpot, output=21)
            call.attributes[semconv.REQUEST_MODEL] = model_of(users)
            found.append(request(number, call.end, call, at=100_000 * burst))
    return found


def concurrent(n_users, stage_of, *, pid_of=lambda _user: 1, rounds=20):
    """Users at once: an own stage of 50 ms each in turn, a model call of 400 ms after it."""
    found = []
    for turn in range(rounds):
        for user in range(n_users):
            number = turn * n_users + user + 1
            at = turn * 450 + stage_of(user)
            call = answer(50, 400, ttft=10)
            found.append(request(number, 400, Call("rerank", "rerank", 0, 50), call, at=at, pid=pid_of(user)))
    return found


def tail(slow, usual, *, n_slow=6, n=100):
    """`n` requests, the last `n_slow` of them made by another recipe."""
    return [*(usual(k) for k in range(1, n - n_slow + 1)), *(slow(k) for k in range(n - n_slow + 1, n + 1))]


def astray(offset, *, n_calls=2):
    """Requests each with calls that became traces of their own, `offset` ms after its start."""
    traces = many(N, lambda k: request(k, 1000, answer(0, 900)))
    for number in range(N * n_calls):
        made = request(
            100 + number, 100, Call("tool", "look up", 0, 100), at=10_000 * (1 + number % N) + offset
        )
        traces.append(Trace(made.trace_id, [made.spans[1]._replace(parent_id=None)]))
    return traces


def echo(_k):
    """The same question and answer for every call."""
    return {semconv.OPENINFERENCE_INPUT: "q", semconv.OPENINFERENCE_OUTPUT: "a"}


# rule -> the run that it speaks about, the run that nearly is one, the run where it would be wrong
RUNS = {
    "requests-failed": (
        lambda: [*many(N, plain), request(90, 5, status="error"), request(91, 5, status="error")],
        lambda: many(N, plain),
        # the user went away: nothing failed
        lambda: [*many(N, plain), request(90, 5, attributes={semconv.OUTCOME: semconv.CANCELLED})],
    ),
    "model-calls-failed": (
        lambda: [*many(N, plain), request(90, 100, answer(0, 90, status="error"))],
        lambda: many(N, plain),
        # the consumer stopped reading: the call did not fail
        lambda: [*many(N, plain), ended(90, semconv.ABANDONED)],
    ),
    "streams-truncated": (
        lambda: [*many(N, plain), ended(90, semconv.TRUNCATED)],
        lambda: [*many(N, plain), ended(90, semconv.ABANDONED)],
        # the answer ended at its limit: it is complete
        lambda: many(
            N, lambda k: request(k, 1000, answer(0, 1000, attributes={semconv.FINISH_REASONS: ["length"]}))
        ),
    ),
    "rate-limited": (
        lambda: [*many(N, plain), retried(90, status=429)],
        lambda: [*many(200, plain), retried(900, status=429)],
        # too many requests at once are refused with 503 by some: that is the server's load, not our limit
        lambda: [*many(N, plain), retried(90, status=503)],
    ),
    "server-overloaded": (
        lambda: [*many(N, plain), retried(90, status=503)],
        lambda: [*many(200, plain), retried(900, status=503)],
        # the request itself was wrong
        lambda: [*many(N, plain), request(90, 9, answer(0, 9, status="error", events=(refused(400),)))],
    ),
    "retries": (
        lambda: [*many(N, plain), retried(90)],
        lambda: [*many(200, plain), retried(900)],
        # a framework's span around the client's is one attempt
        lambda: many(
            N, lambda k: request(k, 1000, answer(0, 1000), answer(1, 999, inside="chat", name="sdk"))
        ),
    ),
    "queue-dominates-first-token": (
        lambda: many(N, lambda k: served(k, queue=400, prefill=50)),
        lambda: many(N, lambda k: served(k, queue=49, prefill=50)),
        # the network takes the time, the engine's queue is empty
        lambda: many(
            N,
            lambda k: request(k, 1000, answer(0, 1000, ttft=600, last=1000, output=5), engine(5, 50, 400)),
        ),
    ),
    "prefill-dominates-first-token": (
        lambda: many(N, lambda k: served(k, prefill=400, prompt=8000, cached=0)),
        lambda: many(N, lambda k: served(k, queue=55, prefill=50)),
        # most of the wait, and nobody would notice it
        lambda: many(N, lambda k: served(k, prefill=20, rest=700)),
    ),
    "decode-dominates": (
        lambda: many(N, lambda k: served(k, decode=900, output=400)),
        lambda: many(N, lambda k: served(k, decode=480, output=400, duration=1000)),
        # long because its consumer is slow: shorter answers are not the point
        lambda: many(
            N,
            lambda k: request(
                k,
                1000,
                answer(0, 1000, ttft=10, last=990, attributes={semconv.STREAM_HOLD_NS: 800_000_000}),
            ),
        ),
    ),
    "tpot-high": (
        lambda: many(N, lambda k: served(k, decode=900, output=11)),
        lambda: many(N, lambda k: served(k, decode=900, output=21)),
        # chunks were counted, and a chunk may be many tokens
        lambda: many(
            N, lambda k: served(k, decode=900, output=11, attributes={semconv.TOKENS_ESTIMATED: True})
        ),
    ),
    "decode-slowed-by-concurrency": (
        lambda: loaded(lambda users, _k: 10 + 5 * users),
        lambda: loaded(lambda users, _k: 10 + 0.5 * users),
        # the model that is asked in bursts is a slower one
        lambda: loaded(lambda users, _k: 10 + 5 * users, model_of=lambda users: f"for {users}"),
    ),
    "consumer-holds-stream": (
        lambda: many(
            N,
            lambda k: request(
                k, 1000, answer(0, 1000, ttft=10, last=990, attributes={semconv.STREAM_HOLD_NS: 500_000_000})
            ),
        ),
        lambda: many(
            N,
            lambda k: request(
                k, 1000, answer(0, 1000, ttft=10, last=990, attributes={semconv.STREAM_HOLD_NS: 50_000_000})
            ),
        ),
        # slow tokens, read at once
        lambda: many(N, lambda k: served(k, decode=900, output=11)),
    ),
    "stream-buffered": (
        lambda: many(N, lambda k: request(k, 1000, answer(0, 1000, attributes={semconv.BUFFERED: True}))),
        lambda: [*many(N, plain), request(90, 99, answer(0, 99, attributes={semconv.BUFFERED: True}))],
        # never asked to stream
        lambda: many(
            N, lambda k: request(k, 1000, answer(0, 1000, attributes={semconv.REQUEST_STREAM: False}))
        ),
    ),
    "rerank-dominates": (
        lambda: many(N, lambda k: staged(k, rerank=500, generation=300)),
        lambda: many(N, lambda k: staged(k, rerank=290, generation=300)),
        # as long as the answer, and beside it: nobody waited
        lambda: many(
            N,
            lambda k: request(
                k, 500, Call("rerank", "rerank", 0, 490), answer(0, 500), Call("tool", "t", 0, 9)
            ),
        ),
    ),
    "retrieval-side-dominates": (
        lambda: many(N, lambda k: staged(k, embedding=100, retrieval=500, generation=300)),
        lambda: many(N, lambda k: staged(k, embedding=100, retrieval=180, generation=300)),
        # long, and of another kind
        lambda: many(N, lambda k: staged(k, tool=600, generation=300)),
    ),
    "embedding-one-by-one": (
        lambda: many(N, lambda k: row(k, "embedding", "embed", 8, after=200)),
        lambda: many(N, lambda k: row(k, "embedding", "embed", 3, after=200)),
        # each call is a batch already
        lambda: many(
            N,
            lambda k: row(
                k, "embedding", "embed", 8, attributes=lambda _k: {semconv.OPENINFERENCE_SECOND_TEXT: "text"}
            ),
        ),
    ),
    "sequential-calls": (
        lambda: many(N, lambda k: row(k, "tool", "look up", 3, after=200)),
        lambda: many(N, lambda k: row(k, "tool", "look up", 2, 10, after=200)),
        # each works on what the one before gave: there is work between them
        lambda: many(N, lambda k: row(k, "tool", "look up", 3, pause=50)),
    ),
    "repeated-calls": (
        lambda: many(N, lambda k: row(k, "retrieval", "search", 1, attributes=echo)),
        lambda: many(N, lambda k: row(k, "retrieval", "search", 1, 5, attributes=echo, after=995)),
        # asked again, and answered differently each time
        lambda: many(
            N,
            lambda k: row(
                k,
                "tool",
                "poll",
                1,
                attributes=lambda _k: {**echo(0), semconv.OPENINFERENCE_OUTPUT: f"state {k}"},
            ),
        ),
    ),
    "sequential-model-calls": (
        lambda: many(N, lambda k: agent(k, (100, 100, 100, 100))),
        lambda: many(N, lambda k: agent(k, (100, 100))),
        # as many calls, and no agent: a pipeline whose steps somebody wrote down
        lambda: many(
            N,
            lambda k: request(k, 800, *(answer(200 * i, 200 * i + 200, name=f"chat {i}") for i in range(4))),
        ),
    ),
    "prompt-growth": (
        lambda: many(N, lambda k: agent(k, (500, 1500, 3000))),
        lambda: many(N, lambda k: agent(k, (500, 700, 900))),
        # the prefix cache answers nearly all of it
        lambda: many(N, lambda k: agent(k, (500, 1500, 3000), cached=0.9)),
    ),
    "unattributed-time": (
        lambda: many(N, lambda k: request(k, 1000, answer(0, 800))),
        lambda: many(N, lambda k: request(k, 1000, answer(0, 960))),
        # spans without a stage inside a stage are that stage's time
        lambda: many(
            N, lambda k: request(k, 1000, answer(0, 1000), Call(None, "POST", 0, 900, inside="chat"))
        ),
    ),
    "cold-start-embedding": (
        lambda: many(N, lambda k: staged(k, embedding=900 if k == 1 else 90, generation=300)),
        lambda: many(N, lambda k: staged(k, embedding=250 if k == 1 else 90, generation=300)),
        # a slow call, and not the first
        lambda: many(N, lambda k: staged(k, embedding=900 if k == 7 else 90, generation=300)),
    ),
    "context-lost": (
        lambda: astray(50),
        lambda: astray(905),  # the calls end after the requests in which they began
        lambda: astray(5000),  # an endpoint of its own, that was asked at other times
    ),
    "event-loop-blocked": (
        lambda: concurrent(4, lambda user: 50 * user),
        # one request at a time: nobody waits
        lambda: concurrent(1, lambda _user: 0),
        # as long, in threads: the others go on meanwhile
        lambda: concurrent(4, lambda user: 20 * user),
    ),
    "slow-tail": (
        lambda: tail(lambda k: served(k, queue=3000), lambda k: served(k, duration=0)),
        lambda: tail(lambda k: served(k, queue=100, duration=0), lambda k: served(k, duration=0)),
        # slow in every part alike: no single one is the cause
        lambda: tail(
            lambda k: staged(k, embedding=900, retrieval=900, generation=900),
            lambda k: staged(k, embedding=100, retrieval=100, generation=100),
        ),
    ),
    "evidence-thin": (
        lambda: many(3, plain),
        lambda: many(20, plain),
        # no request at all is something else, which the evidence says
        list,
    ),
}


@pytest.mark.parametrize("rule", RUNS)
def test_it_speaks_with_evidence_for_and_against_and_a_next_step(rule):
    """The run is what the rule is about: figures for the finding, one against it, and what to do."""
    found = [finding for finding in analyse(RUNS[rule][0]()).findings if finding.id == rule]

    assert len(found) == 1
    assert len(found[0].evidence) > 1
    assert found[0].evidence["against"]
    assert found[0].next_step.endswith((".", "…"))


@pytest.mark.parametrize("rule", RUNS)
def test_it_is_silent_where_its_figures_nearly_say_so(rule):
    """Just on the other side of the threshold."""
    assert rule not in {finding.id for finding in analyse(RUNS[rule][1]()).findings}


@pytest.mark.parametrize("rule", RUNS)
def test_it_is_silent_where_it_would_be_wrong(rule):
    """The figures look alike, and the cause is another."""
    assert rule not in {finding.id for finding in analyse(RUNS[rule][2]()).findings}


@pytest.mark.parametrize(("each", "is_cold"), [(20, False), (200, True)])
def test_a_first_call_that_is_slow_by_chance_is_no_cold_start(each, is_cold):
    """Every twentieth call is as slow, and the first is one of them; or the first alone is."""
    runs = many(200, lambda k: staged(k, generation=900 if k % each == 1 else 200))

    assert ("cold-start-generation" in {finding.id for finding in analyse(runs).findings}) is is_cold


def test_every_rule_is_in_the_docs():
    """docs/findings.md has each finding by its id."""
    page = (Path(__file__).parents[3] / "docs" / "findings.md").read_text("utf-8")
    ids = {rule.removesuffix("-embedding") for rule in (*RUNS, "spans-lost", "spans-unended")}

    assert {rule for rule in ids if f"`{rule}" not in page} == set()
