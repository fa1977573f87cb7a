"""Measures the index where it runs: recall, speed and memory beside hnswlib, in the same minutes, on one core."""
