"""Parsers: one file per format, run in a limited child process."""
