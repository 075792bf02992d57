"""Pseudo-labels y for given probabilities σ: one solver a file."""
