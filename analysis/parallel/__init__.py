"""Large files read by several processes, each a part of the lines: the same figures, sooner.

    processes.py  how a worker comes to be, and ends
    ranges.py     which lines each process reads
    nearby.py     the spans of a trace together, in one part of a file
    messages.py   what the processes say to each other
    worker.py     what a worker does: lines to columns of traces
    pool.py       gives the orders, and adds up what the workers send

Nothing but time depends on it: wherever it cannot be used, or something unexpected happens, the file is read
from the beginning by the process that asked.
"""
