"""Analysis: read, repair, measure.  Pure functions over frozen traces."""
