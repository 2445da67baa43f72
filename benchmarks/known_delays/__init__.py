"""A model server whose delays are known, clients that are timed against it, and the arithmetic of errors."""
