"""What is built once stays whole, whoever dies in the middle."""

import multiprocessing
from pathlib import Path

import pytest

import hotspan
from hotspan.pipelines.engines.cache import built_once, cache_folder


def build(folder):
    """Write two files, and say in a third place that it was done."""
    (folder / "a.bin").write_bytes(b"12345")
    (folder / "sub").mkdir()
    (folder / "sub" / "b.txt").write_text("b", encoding="utf-8")
    with (folder.parent / "builds").open("a") as count:
        count.write("x")


def n_builds(folder):
    """Return how often `build` ran."""
    return len((folder / "builds").read_text(encoding="utf-8"))


def build_in_a_process(folder, barrier):
    """Build when the other process does."""
    barrier.wait()
    built_once(Path(folder) / "thing", build)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        pytest.param({"HOTSPAN_CACHE": "/own", "XDG_CACHE_HOME": "/xdg"}, "/own", id="own"),
        pytest.param({"XDG_CACHE_HOME": "/xdg"}, "/xdg/hotspan", id="xdg"),
        pytest.param({"HOME": "/home/me"}, "/home/me/.cache/hotspan", id="home"),
        pytest.param(
            {"HOTSPAN_CACHE": "", "XDG_CACHE_HOME": "", "HOME": "/h"}, "/h/.cache/hotspan", id="empty"
        ),
    ],
)
def test_cache_folder_follows_the_environment(monkeypatch, variables, expected):
    """The variable of our own wins over XDG's, which wins over the home folder."""
    for name in ("HOTSPAN_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert cache_folder() == Path(expected)


def test_a_whole_folder_is_not_built_again(tmp_path):
    """The second call finds the folder and builds nothing."""
    first = built_once(tmp_path / "thing", build)
    second = built_once(tmp_path / "thing", build)

    assert first == second == tmp_path / "thing"
    assert n_builds(tmp_path) == 1


def _remove(folder):
    (folder / "a.bin").unlink()


def _cut(folder):
    (folder / "a.bin").write_bytes(b"12")


def _lose_manifest(folder):
    (folder / "manifest.json").unlink()


def _spoil_manifest(folder):
    (folder / "manifest.json").write_text("{", encoding="utf-8")


@pytest.mark.parametrize("damage", [_remove, _cut, _lose_manifest, _spoil_manifest])
def test_a_damaged_folder_is_built_anew(tmp_path, damage):
    """A file that is missing or short, or a manifest that is, makes the folder no folder."""
    folder = built_once(tmp_path / "thing", build)
    damage(folder)

    built_once(folder, build)

    assert n_builds(tmp_path) == 2
    assert (folder / "a.bin").read_bytes() == b"12345"


def test_a_build_that_fails_leaves_nothing_in_place(tmp_path):
    """Nobody sees a part of it, and the next build starts from an empty folder."""

    def fail(folder):
        (folder / "part").write_text("p", encoding="utf-8")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        built_once(tmp_path / "thing", fail)
    assert not (tmp_path / "thing").exists()

    folder = built_once(tmp_path / "thing", build)
    assert not (folder / "part").exists()


def test_two_processes_build_once(tmp_path):
    """The second waits for the first and takes what it built."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    both = [context.Process(target=build_in_a_process, args=(str(tmp_path), barrier)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()

    assert [process.exitcode for process in both] == [0, 0]
    assert n_builds(tmp_path) == 1


def test_a_folder_that_cannot_be_written_is_named_with_what_helps(tmp_path):
    """The cache's folder lies below a file: one sentence with the variable to set."""
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(hotspan.ConfigurationError, match="Set HOTSPAN_CACHE"):
        built_once(tmp_path / "file" / "thing", lambda _folder: None)
