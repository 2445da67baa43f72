"""What every process must have for itself, and a forked child gets anew: random ids, and a lock."""

from __future__ import annotations

import os
import random
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_random = random.Random()  # noqa: S311 - span ids need to differ, not to be secret
random_bits: Callable[[int], int] = _random.getrandbits

# Attributes known at decoration are shared by many spans; this guards the moment at which a span gets its
# own.  One lock for all: it is held for the copy of a small dict, and a lock in each span would cost more.
# Reentrant, since the garbage collector may end a dropped stream in the middle of the copy.
copying = threading.RLock()


def _after_fork() -> None:
    global copying  # noqa: PLW0603 - another thread of the parent may have held it
    copying = threading.RLock()
    _random.seed()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
