"""Rules of this project that a test can hold: sizes, names, imports, and what the package lists."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

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
# What a `noqa` or `type: ignore` is followed by: its codes, and a word of reason.
EXPLAINED = re.compile(r"(\[[\w,-]+\]|: [A-Z]+\d+(, [A-Z]+\d+)*) .*\w{3}")


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


@cache
def text_of(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text(encoding="utf-8")


@cache
def parse(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(text_of(path), str(path))


def functions_of(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return every function of a file, nested ones too."""
    return [n for n in ast.walk(parse(path)) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]


def imports_of(path: Path) -> set[str]:
    """Return the top-level packages that a file imports."""
    imported = set()
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imported.add(node.module.partition(".")[0])
    return imported


def test_a_file_fits_into_a_head():
    """A file has at most 400 lines."""
    sizes = {name_of(path): len(text_of(path).splitlines()) for path in python_files(*EVERYWHERE)}

    assert {name: size for name, size in sizes.items() if size > MAX_FILE_LINES} == {}


def test_a_module_says_what_it_is_for():
    """A file begins with what it is for; an empty marker file needs no word."""
    silent = [p for p in python_files(*EVERYWHERE) if text_of(p).strip() and not ast.get_docstring(parse(p))]

    assert [name_of(path) for path in silent] == []


def test_a_function_fits_on_a_screen():
    """A function has at most 60 lines, its docstring counted."""
    sizes = {
        f"{name_of(path)}:{function.lineno} {function.name}": function.end_lineno - function.lineno + 1
        for path in python_files(*EVERYWHERE)
        for function in functions_of(path)
    }

    assert {name: size for name, size in sizes.items() if size > MAX_FUNCTION_LINES} == {}


def test_no_file_imports_a_folder_as_a_package_of_its_own():
    """`import tracer` would make a second copy of every class: it is `hotspan.tracer`."""
    wrong = {name_of(p): imports_of(p) & (set(PACKAGES) - {"hotspan"}) for p in python_files(*EVERYWHERE)}

    assert {name: roots for name, roots in wrong.items() if roots} == {}


def test_attribute_keys_are_written_in_semconv_alone():
    """Whoever needs an attribute's key takes the constant: each key has one spelling and one meaning."""
    modules = {module_of(path) for path in python_files(*PACKAGES)}
    written = {
        f"{name_of(path)}:{node.lineno} {node.value}"
        for path in python_files(*PACKAGES)
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if ATTRIBUTE_KEY.fullmatch(node.value) and node.value not in modules
    }

    assert {place for place in written if not place.startswith("tracer/semconv.py:")} == set()


def test_every_package_of_the_tree_is_listed():
    """A folder that pyproject.toml does not list would be missing from the wheel, and only from there."""
    in_tree = {module_of(p) for p in python_files(*PACKAGES) if p.name == "__init__.py"}
    with_code = {module_of(p.parent / "__init__.py") for p in python_files(*PACKAGES)}

    assert set(SETUPTOOLS["packages"]) == in_tree == with_code


def test_every_top_level_package_is_mapped():
    """The folders of the repository are the sub-packages of `hotspan`."""
    mapped = SETUPTOOLS["package-dir"]

    assert mapped == {"hotspan": "hotspan", **{f"hotspan.{p}": p for p in PACKAGES if p != "hotspan"}}


def test_every_test_states_its_contract():
    """A test has a docstring that says what is promised."""
    silent = [
        f"{name_of(path)}:{function.lineno} {function.name}"
        for path in python_files("tests")
        for function in functions_of(path)
        if function.name.startswith("test_") and not ast.get_docstring(function)
    ]

    assert silent == []


def test_every_exception_from_a_rule_has_a_code_and_a_reason():
    """A bare `noqa` or `type: ignore` hides the next fault too, and one without a reason cannot be judged."""
    unexplained = [
        f"{name_of(path)}: {mark}{rest}"
        for path in python_files(*EVERYWHERE)
        for mark, rest in re.findall(r"# (noqa|type: ignore)(.*)", text_of(path))
        if not EXPLAINED.match(rest)
    ]

    assert unexplained == []
