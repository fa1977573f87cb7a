"""Saved states of the model's KV cache: opaque bytes, found again by name, settings and exact tokens."""
