"""The first bytes of every segment file. Apart from hnsw/format.py, which loads numpy: who only looks whether a file is
a segment needs no more than this."""

# Not text, and broken by any transfer that changes line ends or cuts the eighth bit.
MAGIC = b"\x89ERAG\r\n\x1a"
