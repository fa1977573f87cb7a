"""Models: found, checked, converted and run through llama.cpp."""
