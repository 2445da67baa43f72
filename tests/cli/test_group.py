"""The command line as a whole: what it lists, loads, prints where, and how it exits."""

from __future__ import annotations

import importlib
import importlib.metadata
import io
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from hotspan import ConfigurationError
from hotspan.cli import COMMANDS, main
from hotspan.cli.group import LazyGroup
from hotspan.cli.signals import sigterm_as_ctrl_c


@pytest.fixture
def group_of(monkeypatch):
    """A command line with one command, `go`, that does what it is given."""

    def build(body):
        module = type(sys)("commands_of_a_test.go")
        module.go = click.command("go")(body)
        monkeypatch.setitem(sys.modules, "commands_of_a_test", type(sys)("commands_of_a_test"))
        monkeypatch.setitem(sys.modules, "commands_of_a_test.go", module)
        return LazyGroup("hotspan", commands_of="commands_of_a_test", summaries={"go": "Go."})

    return build


def status_of(group, *args):
    """The exit status of a group called in this process."""
    with pytest.raises(SystemExit) as caught:
        group.main(list(args), "hotspan")
    return caught.value.code


def test_help_lists_every_command(cli):
    """Every command that works is listed with one line; the help goes to standard output."""
    result = cli("--help")
    assert result.exit_code == 0
    assert [
        line.split()[0]
        for line in result.stdout.split("Commands:\n")[1].splitlines()
        if line.startswith("  ")
    ][: len(COMMANDS)] == list(COMMANDS)


def test_help_loads_no_command():
    """`hotspan --help` imports neither the analysis nor rich nor numpy."""
    code = (
        "import sys\nfrom hotspan.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'numpy', 'rich', 'httpx', 'hotspan.analysis', 'hotspan.cli.report', 'hotspan.cli.demo'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stderr.strip() == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples(cli, name):
    """`--help` of every command ends with commands to copy."""
    result = cli(name, "--help")
    assert result.exit_code == 0, result.output
    assert f"Examples:\n    hotspan {name}" in result.stdout


def test_every_module_of_a_command_is_listed():
    """A command that exists is listed, and one that is listed exists under its own name."""
    for name in COMMANDS:
        command = getattr(importlib.import_module(f"hotspan.cli.{name}"), name)
        assert command.name == name


def test_version(cli):
    """`--version` says the installed version."""
    assert cli("--version").stdout == f"hotspan {importlib.metadata.version('hotspan')}\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param(["reprot"], "Error: No such command 'reprot'. Did you mean 'report'?", id="misspelt"),
        pytest.param(["xyzzy"], "Error: No such command 'xyzzy'.\n", id="unknown"),
        pytest.param(["--nope"], "No such option", id="unknown-option"),
        pytest.param(["report"], "Missing argument 'FILE...'", id="missing-argument"),
        pytest.param(["report", "--format", "xml", "f"], "'xml' is not one of", id="unknown-format"),
    ],
)
def test_misuse_exits_with_2(cli, args, message):
    """A usage error is told on standard error, and nothing goes to standard output."""
    result = cli(*args)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_an_error_of_ours_is_one_sentence(group_of, capsys):
    """A HotspanError is its message on standard error and exit code 2: no traceback, no escapes."""

    def body():
        msg = "run.jsonl: line 3 is \x1b[2J.\nDo this."
        raise ConfigurationError(msg)

    assert status_of(group_of(body), "go") == 2
    assert capsys.readouterr() == ("", "Error: run.jsonl: line 3 is \\x1b[2J.\nDo this.\n")


def test_an_error_of_the_system_is_one_sentence(group_of, capsys):
    """What the operating system refuses is told with the file's name."""

    def body():
        raise PermissionError(13, "Permission denied", "/data/x.jsonl")

    assert status_of(group_of(body), "go") == 2
    assert capsys.readouterr().err == "Error: /data/x.jsonl: permission denied.\n"


def test_a_fault_of_ours_is_not_hidden(group_of):
    """An exception that nobody foresaw keeps its traceback."""

    def body():
        msg = "a bug"
        raise ZeroDivisionError(msg)

    with pytest.raises(ZeroDivisionError):
        group_of(body).main(["go"], "hotspan")


@pytest.mark.parametrize("code", [0, 1, 2])
def test_a_command_may_choose_its_status(group_of, code):
    """A gate that failed exits with what it says."""

    def body():
        click.get_current_context().exit(code)

    assert status_of(group_of(body), "go") == code


def test_ctrl_c_exits_with_130(group_of, capsys):
    """An interrupted command ends without a traceback, with the status that shells know."""

    def body():
        raise KeyboardInterrupt

    assert status_of(group_of(body), "go") == 130
    assert "Traceback" not in capsys.readouterr().err


def test_ctrl_c_of_a_real_process(tmp_path):
    """SIGINT while it reads: exit code 130, and nothing but a line break on standard error."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    command = [sys.executable, "-m", "hotspan", "report", str(fifo)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        writer = _opened_for(process, fifo)
        error = _interrupted(process)
        os.close(writer)
    assert process.returncode == 130, error
    assert error.strip() == b""


INTERRUPTED = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
sys.path.append(sys.argv[2])
from hotspan_command import main
main()
"""


@pytest.mark.parametrize("module", ["hotspan", "opentelemetry.trace", "click", "hotspan.cli.group"])
def test_ctrl_c_while_it_is_imported(module):
    """SIGINT that comes with any import of the command's: exit code 130, and not a word."""
    command = [sys.executable, "-c", INTERRUPTED, module, Path(__file__).parents[2]]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def _interrupted(process):
    """Send SIGINT, and return what the process then wrote to standard error.

    One that comes between the interpreter's last look for a signal and its read waits for the end of that.
    """
    process.send_signal(signal.SIGINT)
    try:
        return process.communicate(timeout=10)[1]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        return process.communicate()[1]


def _opened_for(process, fifo):
    """Open a fifo for writing as soon as the process reads it."""
    while process.poll() is None:
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads it yet
            os.sched_yield()
    pytest.fail(f"the command ended before it read: {process.stderr.read()}")


@pytest.mark.parametrize("args", [["--help"], ["report", "--help"]])
def test_a_reader_that_leaves_is_no_error(process, args):
    """A closed pipe ends the command quietly."""
    reader, writer = os.pipe()
    os.close(reader)
    result = process(*args, stdout=writer)
    os.close(writer)
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.parametrize("args", [["--help"], ["report", "--help"], ["report", "FILE"], ["show", "FILE"]])
def test_a_full_disk_is_told(process, trace_file, args):
    """An output that cannot be written is an error, not a success."""
    args = [trace_file if arg == "FILE" else arg for arg in args]
    with Path("/dev/full").open("wb") as full:
        result = process(*args, stdout=full)
    assert result.returncode == 2
    assert result.stderr == (
        b"Error: Standard output cannot be written: no space left on device. "
        b"Free some space, or send it somewhere else.\n"
    )


def test_without_standard_output(trace_file):
    """A process that was started without a standard output still ends well."""
    command = f'"{sys.executable}" -m hotspan report "{trace_file}" >&-'
    result = subprocess.run(command, shell=True, capture_output=True, check=False)  # noqa: S602 - only a shell closes it
    assert (result.returncode, result.stderr) == (0, b"")


def test_python_m_hotspan_is_the_command(process):
    """`python -m hotspan` is called hotspan too."""
    assert process("--help").stdout.startswith(b"Usage: hotspan [OPTIONS]")


def test_programs_may_call_it_without_exiting():
    """Without click's standalone mode errors are exceptions."""
    with pytest.raises(click.UsageError):
        main(["report"], standalone_mode=False)


def test_a_terminal_gets_colour_and_bars(trace_file):
    """On a real terminal the table is drawn; the progress bar of quick work never shows."""
    text = on_terminal("report", trace_file)
    assert "\x1b[" in text
    assert "█" in text
    assert "Reading" not in text


def on_terminal(*args, env=None):
    """What a pseudo-terminal receives from the command."""
    main_end, terminal = pty.openpty()
    variables = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8", "COLUMNS": "110"}
    with subprocess.Popen(
        [sys.executable, "-m", "hotspan", *map(str, args)],
        stdout=terminal,
        stderr=terminal,
        stdin=subprocess.DEVNULL,
        env=variables | (env or {}),
    ) as process:
        os.close(terminal)
        received = io.BytesIO()
        try:
            while chunk := os.read(main_end, 4096):
                received.write(chunk)
        except OSError:  # Linux's way to say that the other end is closed
            pass
        os.close(main_end)
    assert process.returncode == 0
    return received.getvalue().decode()


def test_sigterm_ends_like_ctrl_c(group_of):
    """A command that is told to end cleans up, and exits with the status that shells know."""
    cleaned = []

    def body():
        with sigterm_as_ctrl_c():
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                cleaned.append(True)

    assert status_of(group_of(body), "go") == 143
    assert cleaned
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_the_demo_is_refused_without_tracing(process):
    """`HOTSPAN_DISABLED` leaves nothing to show: said at once."""
    done = process("demo", env={"HOTSPAN_DISABLED": "1"})

    assert (done.returncode, done.stdout) == (2, b"")
    assert b"HOTSPAN_DISABLED is set" in done.stderr
