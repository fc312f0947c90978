"""Programs within a limit of memory: `jit(f, memory="2GB")`. See docs/memory-limit.md."""
