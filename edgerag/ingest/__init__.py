"""From files to committed chunks: discover, parse, chunk, embed, commit."""
