"""The reference agent: plan, act, observe, until it knows enough; then answer.

    request
    └── agent
        ├── step                     at least `MIN_STEPS`, at most `MAX_STEPS`
        │   ├── context_assembly     the task and what is known, under the engine's token budget
        │   ├── generation           a decision, held to a JSON schema by the engine; retried when it fails
        │   └── tool  tool  tool     up to three at once, in threads; a search has its own stages below
        ├── context_assembly
        └── generation               the answer, streamed

Model calls per request: 3 to 8 (2 to 4 decisions, up to 3 retries in all, 1 answer).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

import hotspan
from hotspan.pipelines.decision import (
    FINISH,
    MAX_ACTIONS,
    Action,
    Decision,
    InvalidDecisionError,
    read,
    schema,
)
from hotspan.pipelines.prompt import fit, join

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hotspan.pipelines.engines.base import Engine
    from hotspan.pipelines.tools import Tool

MIN_STEPS: Final = 2
MAX_STEPS: Final = 4
MAX_RETRIES: Final = 3  # of all decisions of one request together
CONTEXT_TOKENS: Final = 700
DECISION_TOKENS: Final = 400
ANSWER_TOKENS: Final = 32

PLAN: Final = "Decide what to do next. You may call several tools at once. Tools:"
ANSWER: Final = "Answer the task from the notes."
NO_SCHEMA: Final = (
    "The agent needs an engine that holds answers to a JSON schema (response_format): use one that does, "
    "or leave the agent out with --agent-requests 0."
)


@dataclass(slots=True)
class _Run:
    """What one run knows so far."""

    task: str
    notes: list[str] = field(default_factory=list)
    n_retries_left: int = MAX_RETRIES


class Agent:
    """Solves tasks with tools.

    Args:
        engine: The model that decides and answers.
        tools: What it may call.
        context_tokens: Budget of one prompt's task and notes.
    """

    def __init__(self, engine: Engine, tools: Sequence[Tool], context_tokens: int = CONTEXT_TOKENS) -> None:
        self._engine = engine
        self._tools = {tool.name: tool for tool in tools}
        self._context_tokens = context_tokens
        self._plan = "\n".join([PLAN, *(f"{tool.name}: {tool.use}" for tool in tools)])
        self._schema = {may_finish: schema(tools, may_finish=may_finish) for may_finish in (False, True)}
        self._pool = ThreadPoolExecutor(MAX_ACTIONS, thread_name_prefix="tool")

    @hotspan.request("agent")
    def stream(self, task: str) -> Iterator[str]:
        """Yield the answer, piece by piece."""
        yield from self.solve(task)

    def answer(self, task: str) -> str:
        """Return the whole answer."""
        return "".join(self.stream(task))

    @hotspan.agent("researcher")
    def solve(self, task: str) -> Iterator[str]:
        """Gather notes step by step, then yield the answer."""
        run = _Run(task)
        for number in range(1, MAX_STEPS + 1):
            if self.step(run, may_finish=number > MIN_STEPS):
                break
        messages = self.assemble(ANSWER, run)
        yield from self._engine.stream(messages, max_tokens=ANSWER_TOKENS)

    @hotspan.step
    def step(self, run: _Run, *, may_finish: bool) -> bool:
        """Decide, act, and note what came of it; return whether the model has finished."""
        decision = self.decide(run, self.assemble(self._plan, run), may_finish=may_finish)
        run.notes.append(f"Thought: {decision.thought}")
        run.notes += self.act([action for action in decision.actions if action.tool != FINISH])
        return may_finish and decision.finished

    def decide(self, run: _Run, messages: list[dict[str, str]], *, may_finish: bool) -> Decision:
        """Return the model's decision; ask again when the call fails or its answer is none.

        Raises:
            hotspan.EngineError: No usable decision, and no retries are left.
        """
        while True:
            try:
                return self._ask(messages, may_finish=may_finish)
            except hotspan.EngineError:
                if run.n_retries_left == 0:
                    raise
                run.n_retries_left -= 1

    def _ask(self, messages: list[dict[str, str]], *, may_finish: bool) -> Decision:
        try:
            answer = self._engine.complete(
                messages, max_tokens=DECISION_TOKENS, schema=self._schema[may_finish]
            )
            return read(answer)
        except InvalidDecisionError as exc:
            msg = f"{self._engine.model}: {exc}. {NO_SCHEMA}"
            raise hotspan.EngineError(msg) from exc
        except hotspan.EngineError as exc:
            if "response_format" not in str(exc) and "json_schema" not in str(exc):
                raise
            msg = f"{str(exc).rstrip('.')}. {NO_SCHEMA}"
            raise hotspan.EngineError(msg) from exc

    def act(self, actions: Sequence[Action]) -> list[str]:
        """Call the tools, all at once, and return one note per call in the order of the calls."""
        if len(actions) <= 1:
            return [self._observe(action) for action in actions]
        return list(self._pool.map(hotspan.propagate(self._observe), actions))

    def _observe(self, action: Action) -> str:
        call, tool = f"{action.tool}({action.argument})", self._tools.get(action.tool)
        if tool is None:
            return f"{call}: error: there is no such tool"
        try:
            return f"{call}: {tool.run(action.argument)}"
        except ValueError as exc:
            return f"{call}: error: {exc}"

    @hotspan.context_assembly
    def assemble(self, instruction: str, run: _Run) -> list[dict[str, str]]:
        """Return the messages for the model: the task, and the newest notes that the budget holds."""
        task_first = [f"Task: {run.task}", *reversed(run.notes)]
        texts = fit(task_first, self._context_tokens, self._engine.count_tokens)
        hotspan.current().set("notes", len(texts) - 1)
        return [
            {"role": "system", "content": instruction},
            {"role": "user", "content": join([*texts[:1], *reversed(texts[1:])])},
        ]

    def warm_up(self) -> None:
        """Make one decision of each kind: an engine compiles a JSON schema when it first sees it."""
        run = _Run("Say hello.")
        for may_finish in (False, True):
            self.decide(run, self.assemble(self._plan, run), may_finish=may_finish)

    def close(self) -> None:
        """End the threads that call tools."""
        self._pool.shutdown(cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()
