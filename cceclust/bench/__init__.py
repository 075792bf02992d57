"""The paper's tables and figures, and measurements of our own, as functions that return plain values."""
