"""A small package: its dataset is in one module, its generator in another."""
