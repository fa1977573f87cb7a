"""One screen per file; a screen fetches from the session and hands records to its widgets."""
