"""Make programs fit a memory limit: `jit(f, memory="2GB")`. See docs/memory-limit.md."""
