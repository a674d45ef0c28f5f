"""Reads generators, samples, datasets and what leads to them; nothing of torch is patched for it."""
