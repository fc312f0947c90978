"""Thirty programs of science and machine learning, from the papers that their modules name."""
