"""Write tests/golden/reports.json: what JAX gives for the programs of reports.txt.

Run it in an environment that has jax: `python tools/make_reports.py`. Names on the command line
choose some programs; the answers of the others are kept.
"""

import json
import pathlib
import sys
import warnings

import jax
import jax.export

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from tests import reports


def main(chosen: list[str]) -> None:
    """Run the programs."""
    warnings.simplefilter("ignore")
    known = json.loads(reports.ANSWERS.read_text()) if reports.ANSWERS.exists() else {}
    names = reports.make_names(jax)
    found = {}
    for name, text in reports.read_programs().items():
        if name in known and name not in chosen and chosen:
            found[name] = known[name]
        else:
            found[name] = reports.run_program(jax, names, text)
    lines = [f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in found.items()]
    reports.ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
