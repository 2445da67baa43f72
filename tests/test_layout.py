"""Rules of this project that a test can hold: sizes, names, imports, and what the package lists."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("hotspan", "tracer", "analysis", "exporters", "pipelines")
EVERYWHERE = (*PACKAGES, "examples", "benchmarks", "scripts", "tests")
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS = PROJECT["tool"]["setuptools"]
# What begins with one of these is an attribute's key, unless it is a module's name.
NAMESPACES = (
    "hotspan|gen_ai|openinference|llm|traceloop|langfuse|langsmith|mlflow|server|error|exception|http|service"
)
ATTRIBUTE_KEY = re.compile(rf"({NAMESPACES})(\.[A-Za-z_]+)+")


def python_files(*folders: str) -> list[Path]:
    """Return the Python files below the folders, caches left out."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    """Return the path as a reader of this repository writes it."""
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path) -> str:
    """Return the name by which a file of the package is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts if parts[0] == "hotspan" else ("hotspan", *parts)).removesuffix(".__init__")


def parse(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def every_file(*folders: str):
    """Make one case of each Python file below the folders."""
    return pytest.mark.parametrize("path", [pytest.param(p, id=name_of(p)) for p in python_files(*folders)])


@every_file(*EVERYWHERE)
def test_a_module_does_one_thing_and_says_so(path):
    """A file has at most 400 lines and begins with what it is for; an empty marker file needs no word."""
    text = path.read_text(encoding="utf-8")

    assert len(text.splitlines()) <= MAX_FILE_LINES
    assert not text.strip() or ast.get_docstring(parse(path))


@every_file(*EVERYWHERE)
def test_a_function_fits_on_a_screen(path):
    """A function has at most 60 lines, its docstring counted."""
    functions = [n for n in ast.walk(parse(path)) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]

    sizes = {f.name: f.end_lineno - f.lineno + 1 for f in functions}

    assert {name: size for name, size in sizes.items() if size > MAX_FUNCTION_LINES} == {}


@every_file(*EVERYWHERE)
def test_no_file_imports_a_folder_as_a_package_of_its_own(path):
    """`import tracer` would make a second copy of every class: it is `hotspan.tracer`."""
    imported = set()
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imported.add(node.module.partition(".")[0])

    assert imported.isdisjoint(set(PACKAGES) - {"hotspan"})


@every_file(*PACKAGES)
def test_attribute_keys_are_written_in_semconv_alone(path):
    """Whoever needs an attribute's key takes the constant: each key has one spelling and one meaning."""
    if name_of(path) == "tracer/semconv.py":
        return
    modules = {module_of(each) for each in python_files(*PACKAGES)}
    texts = {
        n.value for n in ast.walk(parse(path)) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    }

    assert {text for text in texts if ATTRIBUTE_KEY.fullmatch(text) and text not in modules} == set()


def test_every_package_of_the_tree_is_listed():
    """A folder that pyproject.toml does not list would be missing from the wheel, and only from there."""
    in_tree = {module_of(p) for p in python_files(*PACKAGES) if p.name == "__init__.py"}
    with_code = {module_of(p.parent / "__init__.py") for p in python_files(*PACKAGES)}

    assert set(SETUPTOOLS["packages"]) == in_tree == with_code


def test_every_top_level_package_is_mapped():
    """The folders of the repository are the sub-packages of `hotspan`."""
    mapped = SETUPTOOLS["package-dir"]

    assert mapped == {"hotspan": "hotspan", **{f"hotspan.{p}": p for p in PACKAGES if p != "hotspan"}}


@every_file("tests")
def test_every_test_states_its_contract(path):
    """A test has a docstring that says what is promised."""
    tests = [n for n in ast.walk(parse(path)) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]

    assert [t.name for t in tests if t.name.startswith("test_") and not ast.get_docstring(t)] == []


@every_file(*EVERYWHERE)
def test_every_exception_from_a_rule_has_a_code_and_a_reason(path):
    """A bare `noqa` or `type: ignore` hides the next fault too, and one without a reason cannot be judged."""
    marks = re.findall(r"# (noqa|type: ignore)(.*)", path.read_text(encoding="utf-8"))

    unexplained = [
        mark + rest
        for mark, rest in marks
        if not re.match(r"(\[[\w,-]+\]|: [A-Z]+\d+(, [A-Z]+\d+)*) .*\w{3}", rest)
    ]
    assert unexplained == []
