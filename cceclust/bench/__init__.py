"""The paper's tables and figures, and further benchmarks, as functions that return plain values."""
