"""One fit: measure, space, graph, starts, train, judge, fold, predict."""
