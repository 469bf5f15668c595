#!/usr/bin/env python3
"""Writes numpy.npz beside it: one array of each kind that NumPy stores in a way of its own. It was run once; the result is
committed. usage: python3 make.py (needs numpy)"""

import pathlib

import numpy as np

np.savez_compressed(
    pathlib.Path(__file__).with_name("numpy.npz"),
    fortran=np.asfortranarray(np.arange(6, dtype=np.uint8).reshape(2, 3)),
    half=np.array([1, -2], np.float16),
    big=np.array([[1, -2]], ">i4"),
    truth=np.array([True, False]),
    bytes=np.array([b"ab", b"c"]),
    text=np.array(["Größe", "北京"]),
    scalar=np.int64(7),
)
