"""Encryption of what a library keeps on the disk: its keys, its files in units, its databases."""
