"""Programs in C: `to_c` writes a function of arrays as a source that needs libc and libm only.

From top to bottom: program.py takes a staged program; expand.py brings it to few kinds of
operations; writer.py (with emit.py, control.py, reductions.py, scalars.py) makes loop nests of
them, the nodes of nodes.py; memory.py plans the arena; source.py and printer.py write C.
"""
