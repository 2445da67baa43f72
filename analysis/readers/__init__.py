"""Readers of trace files, one per format; `sniff` chooses by content."""
