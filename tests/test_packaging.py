"""What a user installs: the same names from the editable install, the wheel and the source distribution.

Built from a copy of the tree, so that nothing left over in it (`build/`, caches) hides a fault.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOLDERS = {
    "hotspan": "hotspan",
    **{f: f"hotspan/{f}" for f in ("tracer", "analysis", "exporters", "pipelines")},
}
LEFT_OUT = shutil.ignore_patterns(
    ".*",
    "__pycache__",
    "*.egg-info",
    "build",
    "dist",
    "tests",
    "venv",
    "benchmarks",
    "node_modules",
    "*.jsonl",
)

# What a fresh interpreter finds, as JSON: every public name, every module, and where they lie.
PROBE = """
import importlib, importlib.metadata as metadata, json, pkgutil, sys
import hotspan
names = {name: type(getattr(hotspan, name)).__name__ for name in hotspan.__all__}
modules = sorted(m.name for m in pkgutil.walk_packages(hotspan.__path__, "hotspan."))
heavy = sorted({"torch", "transformers", "vllm", "faiss", "openai"} & set(sys.modules))
print(json.dumps({
    "names": names, "modules": modules, "heavy": heavy, "version": hotspan.__version__,
    "metadata": metadata.version("hotspan"), "where": hotspan.__file__,
    "typed": (importlib.resources.files("hotspan") / "py.typed").is_file(),
}))
"""


def checked(*command: object, cwd: Path | None = None) -> str:
    """Run a program that must succeed, and return what it printed."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "HOTSPAN_"))
    }
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def in_tree() -> set[str]:
    """Return the files that a user must receive, by their place in the wheel."""
    return {"hotspan_command.py"} | {
        f"{packaged}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, packaged in FOLDERS.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy of the tree without what is not tracked."""
    return Path(shutil.copytree(ROOT, tmp_path_factory.mktemp("source") / "hotspan", ignore=LEFT_OUT))


@pytest.fixture(scope="module")
def built(source):
    """The folder with the source distribution, and the wheel that was built from it."""
    checked(sys.executable, "-m", "build", "--no-isolation", source)
    return source / "dist"


@pytest.fixture(scope="module")
def wheel(built):
    """The wheel."""
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def sdist(built):
    """The source distribution."""
    (path,) = built.glob("*.tar.gz")
    return path


@pytest.fixture(scope="module")
def pip(tmp_path_factory):
    """A pip of our own, which installs into other environments; the tests' environment may have none."""
    folder = tmp_path_factory.mktemp("pip")
    checked(sys.executable, "-m", "venv", folder)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def backend(tmp_path_factory):
    """A folder with setuptools alone: pip must not see the Hotspan that the tests themselves run on."""
    folder = tmp_path_factory.mktemp("backend")
    beside = Path(pytest.importorskip("setuptools").__file__).parents[1]
    for part in (*beside.glob("setuptools*"), *beside.glob("_distutils_hack")):
        (folder / part.name).symlink_to(part)
    return folder


def site_packages(python: Path) -> Path:
    """Return the folder into which an environment installs."""
    return Path(checked(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())


@pytest.fixture
def install(pip, backend, tmp_path):
    """Install into a fresh environment, which borrows this one's dependencies, and return what is found."""

    def run(name: str, *what: object) -> dict[str, object]:
        folder = tmp_path / name
        checked(sys.executable, "-m", "venv", "--without-pip", folder)
        python = folder / "bin" / "python"
        paths = site_packages(python) / "borrowed.pth"
        paths.write_text(f"{backend}\n", encoding="utf-8")
        options = ("--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check")
        checked(pip, "-m", "pip", "--python", python, "install", *options, *what)
        dependencies = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
        paths.write_text("\n".join(dependencies), encoding="utf-8")
        found = json.loads(checked(python, "-I", "-c", PROBE, cwd=folder))
        return {**found, "command": checked(folder / "bin" / "hotspan", "--version", cwd=folder)}

    return run


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel):
    """Every module, template and marker is there; no tests, no caches, no stray folder."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}

    assert names == in_tree()


def test_the_source_distribution_builds_by_itself(sdist):
    """It holds the package, the licence and what is read first, and nothing that only a developer has."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    package = {name for folder in FOLDERS for name in names if name.startswith(f"{folder}/")}
    assert {
        path.relative_to(ROOT).as_posix() for f in FOLDERS for path in (ROOT / f).rglob("*.py")
    } <= package
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "hotspan/py.typed"} <= names
    assert [name for name in names if name.startswith("tests/") or "__pycache__" in name] == []


def test_the_metadata_is_that_of_the_project(wheel):
    """Name, version, Python, licence, extras and the command are what pyproject.toml says."""
    with zipfile.ZipFile(wheel) as archive:
        (folder,) = {name.partition("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        metadata = BytesParser().parsebytes(archive.read(f"{folder}/METADATA"))
        entry_points = archive.read(f"{folder}/entry_points.txt").decode()
        has_licence = f"{folder}/licenses/LICENSE" in archive.namelist()

    assert (metadata["Name"], metadata["Version"]) == ("hotspan", PROJECT["version"])
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert has_licence
    assert set(metadata.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "hotspan = hotspan_command:main" in entry_points


def test_every_way_to_install_gives_the_same_names(install, source, wheel, sdist, tmp_path):
    """Editable, wheel and source distribution: the same public names, modules, version and command."""
    editable = install("editable", "--editable", source)
    from_wheel = install("wheel", wheel)
    from_sdist = install("sdist", sdist)

    assert Path(editable.pop("where")).is_relative_to(source)
    assert Path(from_wheel.pop("where")).is_relative_to(tmp_path / "wheel")
    assert Path(from_sdist.pop("where")).is_relative_to(tmp_path / "sdist")
    assert from_wheel == from_sdist
    assert from_wheel["typed"]
    assert from_wheel["heavy"] == []
    assert from_wheel["version"] == from_wheel["metadata"] == PROJECT["version"]
    assert PROJECT["version"] in from_wheel["command"]
    # A mapped package's modules are found by import, and not by a walk, through the editable install.
    assert {**editable, "modules": None} == {**from_wheel, "modules": None}
