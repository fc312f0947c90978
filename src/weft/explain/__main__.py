"""Run a program and report its costs: `weft explain script.py`, or `python -m weft.explain`."""

import sys

from weft.__main__ import find_program, refuse
from weft.explain.script import explain_program

if __name__ == "__main__":
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        refuse("explain must be followed by script.py, -m module or -c code")
    explain_program(find_program(arguments), " ".join(arguments))
