"""Widgets show records and post messages; they never call the session."""
