"""Special functions as primitives: formulas, tables, and the operations made of them."""
