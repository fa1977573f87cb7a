"""What a person sees: the command line and the terminal UI, both over the same session."""
