"""The transformations and loops that users call: pytrees in, pytrees out."""
