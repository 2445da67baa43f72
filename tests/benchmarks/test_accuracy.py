"""The accuracy benchmark: its arithmetic, the server that it trusts, and its one command on what is here."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
MS = 1_000_000
STAMPS = [1_000 * MS, 1_005 * MS, 1_100 * MS, 1_120 * MS, 1_150 * MS]  # arrival, role, three tokens


@pytest.fixture
def bench(monkeypatch):
    """The benchmark's own modules."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from known_delays import errors, schedule, server, table  # noqa: PLC0415 - found from here on

    return SimpleNamespace(errors=errors, schedule=schedule, server=server, table=table)


# --- Arithmetic --------------------------------------------------------------------------------------------


def test_truth_counts_from_the_arrival_of_the_request(bench):
    """TTFB is the role's, TTFT the first token's, and TPOT spreads the rest over the later tokens."""
    assert bench.errors.true_account(STAMPS) == {
        "ttfb": 5 * MS,
        "ttft": 100 * MS,
        "tpot": 25 * MS,
        "gaps": [20 * MS, 30 * MS],
    }


def test_an_answer_of_one_token_has_no_truth(bench):
    """Nothing is divided by zero: an answer without a gap is refused."""
    with pytest.raises(ValueError, match="1 tokens"):
        bench.errors.true_account(STAMPS[:3])


def test_an_error_is_recorded_less_true(bench):
    """Early is negative, late positive; gaps are compared one by one, and calls that warm up are left out."""
    recorded = {"ttfb": 6 * MS, "ttft": 5 * MS, "tpot": 25 * MS, "gaps": [21 * MS, 28 * MS]}
    truth = {"r0-1-0": STAMPS, "r0-warm-1": STAMPS}

    found = bench.errors.errors({"r0-1-0": recorded, "r0-warm-1": recorded}, truth)

    assert found == {"ttfb": [MS], "ttft": [-95 * MS], "tpot": [0], "gaps": [MS, -2 * MS]}


@pytest.mark.parametrize(
    ("accounts", "missing"),
    [
        pytest.param({}, 1.0, id="no-call"),
        pytest.param({"a": {"ttft": 1}}, 0.5, id="one-of-two"),
        pytest.param({"a": {"ttft": 1}, "b": {"ttft": None}}, 0.5, id="null"),
        pytest.param({"a": {"ttft": 0}, "b": {"ttft": 1}}, 0.0, id="zero-is-a-figure"),
    ],
)
def test_what_was_not_recorded_is_counted(bench, accounts, missing):
    """A call without the figure is no error of zero: its share is told apart."""
    truth = {"a": STAMPS, "b": STAMPS}

    assert bench.errors.missing_ratio(accounts, truth, "ttft") == missing
    assert len(bench.errors.errors(accounts, truth)["ttft"]) == round(2 * (1 - missing))


def test_another_number_of_gaps_is_no_comparison(bench):
    """Gaps that cannot be told which belong to which token give no error."""
    assert bench.errors.errors({"a": {"gaps": [1, 2, 3]}}, {"a": STAMPS})["gaps"] == []


@pytest.mark.parametrize(
    ("values", "p50", "p99"),
    [
        pytest.param([7], 7, 7, id="one"),
        pytest.param([-1, 3], 2, 2.98, id="absolute"),
        pytest.param(list(range(101)), 50, 99, id="ladder"),
    ],
)
def test_percentiles_are_of_absolute_errors(bench, values, p50, p99):
    """A client that is early by a millisecond is as wrong as one that is late by it."""
    found = bench.errors.spread(values)

    assert (found.p50, found.p99, found.n) == (p50, pytest.approx(p99), len(values))
    assert bench.errors.spread([]) is None


def test_above_the_bare_client_is_taken_round_by_round(bench):
    """What a client adds is the median of the differences, so that a slow round counts for both."""
    spread = bench.errors.Spread
    mine = [spread(3, 30, 5), spread(103, 130, 5), spread(4, 50, 5)]
    bare = [spread(2, 20, 5), spread(100, 90, 5), spread(2, 20, 5)]

    assert bench.errors.above(mine, bare) == spread(2, 30, 15)
    assert bench.errors.above(mine, []) is None


def test_a_row_says_what_is_above_the_bare_client_and_what_is_missing(bench):
    """A cell has both percentiles, the difference to the bare client in brackets, and gaps in the record."""
    spread, reading = bench.errors.Spread, bench.table.Reading
    mine = [reading({"ttft": spread(1.5 * MS, 12 * MS, 4)}, {"ttft": 0.25}, 100.0)]
    bare = [reading({"ttft": spread(1.75 * MS, 2 * MS, 4)}, {"ttft": 0.0}, 90.0)]

    assert bench.table.cell("ttft", mine, bare) == "1.50 / 12 (−0.25 / +10), 25% missing"  # noqa: RUF001 - a minus
    assert bench.table.cell("ttft", bare, []) == "1.75 / 2.00"
    assert bench.table.cell("ttfb", mine, bare) == bench.table.NOTHING


# --- The server --------------------------------------------------------------------------------------------


@pytest.fixture
def known(bench):
    """A server with short delays, its address and its schedule."""
    schedule = bench.schedule.Schedule(role_ns=MS, first_ns=20 * MS, gap_ns=5 * MS, n_tokens=4)
    command = [sys.executable, "-m", "known_delays.server", schedule.to_json()]
    process = subprocess.Popen(
        command, cwd=BENCHMARKS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    yield SimpleNamespace(port=int(process.stdout.readline()), schedule=schedule)
    process.kill()
    process.communicate()


def ask(connection, head, body=b""):
    """Send a request, and return the response up to the end of a chunked body, or of one with a length."""
    connection.sendall(head + b"content-length: %d\r\n\r\n" % len(body) + body)
    received = b""
    while not received.endswith(b"0\r\n\r\n") and not received.endswith(b"}"):
        received += connection.recv(1 << 16)
    return received


def test_the_server_keeps_its_schedule_and_says_what_it_did(known):
    """Nothing is sent before it is due; what was sent when is told, once."""
    with socket.create_connection(("127.0.0.1", known.port)) as connection:
        body = json.dumps({"model": "a"}).encode()
        answered = ask(connection, b"POST /v1/chat/completions HTTP/1.1\r\n", body)
        account = json.loads(ask(connection, b"GET /account HTTP/1.1\r\n").partition(b"\r\n\r\n")[2])
        again = json.loads(ask(connection, b"GET /account HTTP/1.1\r\n").partition(b"\r\n\r\n")[2])

    arrived, *sent = account["a"]
    assert len(sent) == 1 + known.schedule.n_tokens
    assert all(at - arrived >= known.schedule.due_ns(number) for number, at in enumerate(sent))
    assert answered.count(b'" token"') == known.schedule.n_tokens
    assert b'"completion_tokens":4' in answered
    assert b"data: [DONE]" in answered
    assert again == {}


def test_the_kernels_stamp_is_told_on_the_monotonic_clock(bench):
    """A stamp of the wall clock becomes one of the clock that both processes read, never in the future."""
    assert bench.server.arrived_ns([]) > 0
    future = (1 << 40).to_bytes(8, sys.byteorder) + bytes(8)
    before = bench.server.arrived_ns([])
    assert bench.server.arrived_ns([(1, 35, future)]) >= before


# --- The command -------------------------------------------------------------------------------------------


def test_refuses_what_it_does_not_know():
    """An unknown contender is an error of usage that names those that there are."""
    command = [sys.executable, str(BENCHMARKS / "accuracy.py"), "--contenders", "nobody"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "no contender 'nobody'" in done.stderr
    assert "hotspan" in done.stderr
