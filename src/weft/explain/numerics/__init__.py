"""Where precision is lost, line by line: `weft.explain.numerics(f)(*args)`."""
