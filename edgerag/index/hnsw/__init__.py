"""HNSW segments: built by hnswlib, exported into checksummed blocks, searched in the file."""
