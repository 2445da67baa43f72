"""transformers, in this process: no server; its account is what `trace_transformers` sees of `generate`.

`generate` hands out the prompt just before the first forward pass and each token as it is chosen: prefill is
from the one to the first of the others, decode from there to the last one.  There is no queue.
"""

from __future__ import annotations

from typing import Final

from hotspan.tracer.engines.base import Engine

ENGINE: Final = Engine(name="transformers", response_field="token steps")
