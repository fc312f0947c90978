"""Write tests/golden/array_api.json: the signatures of the Python array API standard.

Run it where array-api-strict is installed: `python tools/make_array_api.py`. That package
has the functions of the standard (2024.12) with its signatures, and no more.
"""

import inspect
import json
import pathlib

import array_api_strict as standard


def signature(fun):
    """The parameters, each as it may be passed: "/x" by position, "=x" by name, "x" by both."""
    marks = {"POSITIONAL_ONLY": "/", "KEYWORD_ONLY": "=", "VAR_POSITIONAL": "*"}
    parameters = inspect.signature(fun).parameters.values()
    return [marks.get(p.kind.name, "") + p.name for p in parameters]


found = {}
for prefix, module in (("", standard), ("linalg.", standard.linalg), ("fft.", standard.fft)):
    for name in sorted(module.__all__):
        member = getattr(module, name)
        if inspect.isfunction(member) and not name.startswith(("_", "set_", "reset_", "get_")):
            found[prefix + name] = signature(member)
rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(ps)}" for name, ps in found.items())
pathlib.Path(__file__).parents[1].joinpath("tests/golden/array_api.json").write_text(
    "{\n" + rows + "\n}\n"
)
