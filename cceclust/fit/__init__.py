"""One fit, from top to bottom: sample, space, graph, starts, heads, choice, fold, predict."""
