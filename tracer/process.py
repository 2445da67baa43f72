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

# Guards what is made when it is first needed.  One for all of it: it is held for a moment, and a lock in each
# span would cost more.  Reentrant, since the garbage collector may end a dropped stream in that moment.
lock = threading.RLock()


def _after_fork() -> None:
    global lock  # noqa: PLW0603 - another thread of the parent may have held it
    lock = threading.RLock()
    _random.seed()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
