"""Attention of Xformers: sparse patterns, kernels and projections."""
