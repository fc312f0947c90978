"""Watch programs as they run: NaNs, keys used twice, leaked tracers, events."""
