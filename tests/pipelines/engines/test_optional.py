"""A package that is not installed is named, with what brings it."""

import json.decoder
import sys

import pytest

import hotspan
from hotspan.pipelines.engines import embedded_engine, vllm_engine
from hotspan.pipelines.engines.optional import need, version_of


def test_an_installed_module_is_returned():
    """Nothing is wrapped around it."""
    assert need("json.decoder", what="The test") is json.decoder


def test_a_missing_module_names_package_and_extra():
    """The message is a sentence with the command that helps."""
    with pytest.raises(hotspan.MissingDependencyError) as caught:
        need("nowhere_to_be_found.sub", what="The test", extra="rag")

    assert str(caught.value) == (
        "The test needs the package nowhere_to_be_found, which is not installed. "
        "Install it with: pip install '.[rag]' in a clone of the repository."
    )


def test_a_module_that_fails_to_import_says_why(tmp_path, monkeypatch):
    """A broken installation is not called a missing one."""
    (tmp_path / "broken_here.py").write_text("import missing_below", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(hotspan.MissingDependencyError, match=r"cannot be imported .*missing_below"):
        need("broken_here", what="The test")


def test_a_missing_package_has_no_version():
    """The version is asked for without an import; a missing package is the same error."""
    assert version_of("pytest", what="The test") == pytest.__version__
    with pytest.raises(hotspan.MissingDependencyError, match=r"pip install '\.\[rag\]'"):
        version_of("nowhere-to-be-found", what="The test")


@pytest.mark.parametrize("missing", ["torch", "transformers"])
def test_the_embedded_engine_without_its_packages_says_what_to_install(monkeypatch, missing):
    """No traceback of an import: one sentence."""
    monkeypatch.setitem(sys.modules, "torch", sys)  # any module: only its presence is looked at
    monkeypatch.setitem(sys.modules, missing, None)

    with pytest.raises(hotspan.MissingDependencyError, match=missing):
        embedded_engine()


def test_the_vllm_engine_without_vllm_says_what_to_install(monkeypatch):
    """Both ways are named, with a GPU and without."""
    monkeypatch.setitem(sys.modules, "vllm", None)

    with pytest.raises(hotspan.MissingDependencyError, match=r"'\.\[rag,vllm\]'.*make demo ENGINE=vllm"):
        vllm_engine()
