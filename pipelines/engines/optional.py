"""Packages that only some engines need."""

from __future__ import annotations

import importlib
import importlib.metadata
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import hotspan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def need(module: str, *, what: str, extra: str = "rag") -> Any:
    """Import and return an optional module.

    Args:
        module: Its dotted name.
        what: What cannot be done without it, as the subject of a sentence: "the embedded engine".
        extra: The extra of `hotspan` that brings it.

    Raises:
        hotspan.MissingDependencyError: It is not installed, or its own import fails; says what to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        state = (
            "is not installed" if getattr(error, "name", None) == package else f"cannot be imported ({error})"
        )
        raise _missing(package, state, what, extra) from error


def version_of(package: str, *, what: str, extra: str = "rag") -> str:
    """Return an optional package's version without importing it.

    Raises:
        hotspan.MissingDependencyError: It is not installed; says what to install.
    """
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError as error:
        raise _missing(package, "is not installed", what, extra) from error


@contextmanager
def no_progress_bars() -> Iterator[None]:
    """Keep transformers' progress bars off stderr for work that takes a moment."""
    logging = need("transformers.utils.logging", what="The tiny model")
    was_on = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_on:
            logging.enable_progress_bar()


def one_thread() -> Callable[[], AbstractContextManager[object]]:
    """Return a context manager's maker: inside, the calling thread's tensor work stays on one core.

    Threads that wait for each other by spinning cost a small model twenty times its work on a busy machine.
    Other threads, and this one outside, keep what they had.
    """
    threadpoolctl = need("threadpoolctl", what="The embedded engine")
    pools = threadpoolctl.ThreadpoolController().select(user_api="openmp")
    return partial(pools.limit, limits=1)


def _missing(package: str, state: str, what: str, extra: str) -> hotspan.MissingDependencyError:
    return hotspan.MissingDependencyError(
        f"{what} needs the package {package}, which {state}. "
        f"Install it with: pip install '.[{extra}]' in a clone of the repository."
    )
