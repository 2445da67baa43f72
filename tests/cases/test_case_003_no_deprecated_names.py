"""Importing and decorating warns of nothing, on any Python that there is."""

import subprocess
import sys

PROGRAM = """
import functools, hotspan
def fn(): pass
async def coroutine(): pass
def generator(): yield
async def async_generator(): yield
class Class:
    def method(self): pass
    def __call__(self): pass
objects = (Class(), functools.partial(fn), Class().method, len)
for what in (fn, coroutine, generator, async_generator, Class, *objects):
    hotspan.step(what)
    hotspan.propagate(what) if what is not Class else None
"""


def test_no_warning():
    """Every kind is decorated with all warnings turned into errors."""
    subprocess.run([sys.executable, "-W", "error", "-c", PROGRAM], check=True, timeout=60)
