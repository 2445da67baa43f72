"""What measures: the rows, the worker that a contender runs in, its environment, and the table."""
