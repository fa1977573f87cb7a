"""edgerag: answers from your own documents, on this machine alone."""

__version__ = "0.1.0"
