"""The group that all commands hang in: loads a command when it is called, and exits as promised."""

from __future__ import annotations

import difflib
import importlib
import sys
from typing import TYPE_CHECKING, Any

import click

from hotspan.cli import output
from hotspan.tracer.errors import HotspanError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_UNUSABLE = 2
_NO_MEMORY = (
    "The memory does not suffice: a report keeps about a kilobyte of each request. "
    "Give the process more of it, or name fewer files."
)
_INTERRUPTED = 130  # 128 + SIGINT, what a shell reports of a program that Ctrl-C ended


class UnusableError(click.ClickException):
    """What was asked for cannot be done; the message says why and what to do next."""

    exit_code = _UNUSABLE

    def format_message(self) -> str:
        """Return the message with whatever a file smuggled into it made harmless."""
        return output.printable_lines(self.message)


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called, and whose help imports none.

    Args:
        commands_of: The package in which the module of a command's name has the command of that name.
        summaries: Name -> one line for the help.
    """

    def __init__(self, *args: Any, commands_of: str, summaries: Mapping[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self._package = commands_of
        self._summaries = summaries

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of the commands, in the order of use."""
        return list(self._summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        """Import and return a command; None when there is no such."""
        if cmd_name not in self._summaries:
            return None
        command: click.Command = getattr(importlib.import_module(f"{self._package}.{cmd_name}"), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments begin with; a name that is none gets the nearest one named."""
        name = args[0]
        if name not in self._summaries and not name.startswith("-"):
            near = difflib.get_close_matches(name, self._summaries, n=1)
            ctx.fail(f"No such command {name!r}.{f' Did you mean {near[0]!r}?' if near else ''}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self._summaries.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what it may fail with on purpose becomes one sentence."""
        try:
            result = super().invoke(ctx)
            output.flush()
        except HotspanError as exc:
            raise UnusableError(str(exc)) from exc
        except MemoryError as exc:
            raise UnusableError(_NO_MEMORY) from exc
        except SystemExit as exc:  # a command ends by returning, or by `ctx.exit`
            ctx.exit(exc.code if isinstance(exc.code, int) else int(exc.code is not None))
        except OSError as exc:
            output.settle()
            if output.is_broken_pipe(exc):  # the reader, such as `head`, has seen enough
                ctx.exit(0)
            raise UnusableError(output.sentence_of(exc)) from exc
        return result

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 - click's signature
        **extra: Any,
    ) -> Any:
        """Run the command line and exit with the promised status."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        sys.exit(self._status(args, prog_name, complete_var, extra))

    def _status(
        self,
        args: Sequence[str] | None,
        prog_name: str | None,
        complete_var: str | None,
        extra: dict[str, Any],
    ) -> int:
        try:
            result = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.ClickException as exc:
            exc.show()
            return _UNUSABLE
        except (click.Abort, KeyboardInterrupt):
            return _INTERRUPTED
        except SystemExit:  # click's answer to a reader that left while it printed the help
            output.settle()
            return 0
        except OSError as exc:  # the help itself cannot be written
            output.settle()
            UnusableError(output.sentence_of(exc)).show()
            return _UNUSABLE
        return result if isinstance(result, int) else 0
