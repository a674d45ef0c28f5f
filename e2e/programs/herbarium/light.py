import numpy as np

LAMP = np.random.default_rng(12)


def flicker(leaf):
    return leaf * LAMP.uniform(0.8, 1.2, leaf.shape)
