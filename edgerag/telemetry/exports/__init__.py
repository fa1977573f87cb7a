"""A kept trace in the forms of other programs. Pure: each gives text that is inert, whatever a name holds."""
