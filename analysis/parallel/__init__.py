"""Large files read by several processes, each a part of the lines: the same report, sooner.

    ranges.py    which lines each process reads
    messages.py  what the processes say to each other
    worker.py    a process of its own: lines to columns of traces
    pool.py      starts the workers, and adds up what they send

Nothing but time depends on it: wherever it cannot be used, or something unexpected happens, the file is read
from the beginning by the process that asked.
"""
