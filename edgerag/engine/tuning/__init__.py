"""Autotune: what runs this model fastest on this machine is measured here, kept, and explained."""
