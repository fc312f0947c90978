"""Programs for sizes that vary, on padded arrays: results never depend on the padding.

See docs/sizes-that-vary.md.
"""
