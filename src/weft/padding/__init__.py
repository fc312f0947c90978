"""Programs for sizes that vary: padded arrays that are correct by construction.

See docs/sizes-that-vary.md.
"""
