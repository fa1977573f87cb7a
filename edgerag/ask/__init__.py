"""From a question to a cited answer: plan, retrieve, fuse, select, assemble, generate, cite."""
