"""The index: documents and their words in SQLite, their vectors in mapped segment files."""
