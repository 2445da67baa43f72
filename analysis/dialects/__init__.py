"""Dialects: how other writers of spans say what Hotspan says with `hotspan.stage`.

`table.py` is the list of writers.  `read` says what one span is; `translate` writes what others call tokens,
models, first tokens and errors under the keys of `tracer/semconv.py`, so that nothing after it knows them.
"""

from hotspan.analysis.dialects.failures import makes_no_call
from hotspan.analysis.dialects.reading import read
from hotspan.analysis.dialects.rules import Reading
from hotspan.analysis.dialects.translate import translate
from hotspan.analysis.dialects.transport import waits_for_the_end

__all__ = ["Reading", "makes_no_call", "read", "translate", "waits_for_the_end"]
