"""A folder for the web: a program as WebAssembly, JavaScript that calls it, and a page."""

from __future__ import annotations

import json
import pathlib

from weft.export.c.memory import ALIGNMENT
from weft.export.c.source import Parameter, Source

# Typed arrays of JavaScript by the names of kinds. Complex numbers are pairs.
ARRAYS = {
    "b": "Uint8Array", "f32": "Float32Array", "f64": "Float64Array", "bf16": "Uint16Array",
    "f16": "Uint16Array", "c64": "Float32Array", "c128": "Float64Array", "i8": "Int8Array",
    "i16": "Int16Array", "i32": "Int32Array", "i64": "BigInt64Array", "u8": "Uint8Array",
    "u16": "Uint16Array", "u32": "Uint32Array", "u64": "BigUint64Array",
}  # fmt: skip
SCRIPT = """\
// {name}: written by weft. `load()` gives a function that takes an object with the arguments, typed
// arrays in row-major order and numbers, and gives an object with typed arrays:
//
//   import {{ load }} from "./model.js";
//   const call = await load();
//   const {{ {first} }} = call({{ {listed} }});

export const parameters = {parameters};
export const results = {results};
const arrays = {{ {arrays} }};
const alignment = {alignment};
const workspace = {workspace};

const align = (at) => Math.ceil(at / alignment) * alignment;

// Give each array a place in memory after `start`; the places, and where the workspace begins.
function place(start) {{
  let at = align(start);
  const places = new Map();
  for (const p of [...parameters, ...results]) {{
    if (p.byValue) continue;
    places.set(p.name, at);
    at = align(at + p.size * arrays[p.array].BYTES_PER_ELEMENT);
  }}
  return [places, at];
}}

// Make the function of an instance of the module.
export function bind(instance) {{
  const {{ memory, __heap_base, _initialize }} = instance.exports;
  if (_initialize) _initialize();
  const [places, end] = place(__heap_base.value);
  const missing = end + workspace - memory.buffer.byteLength;
  if (missing > 0) memory.grow(Math.ceil(missing / 65536));
  const view = (p) => new arrays[p.array](memory.buffer, places.get(p.name), p.size);
  return (given) => {{
    const values = parameters.map((p) => {{
      const x = given[p.name];
      if (x === undefined) throw new TypeError(`{name}: needs the argument ${{p.name}}`);
      if (p.byValue) return p.array.startsWith("Big") ? BigInt(x) : Number(x);
      if (x.length !== p.size)
        throw new RangeError(`{name}: ${{p.name}} needs ${{p.size}} elements; got ${{x.length}}`);
      view(p).set(x);
      return places.get(p.name);
    }});
    instance.exports.{name}(...values, ...results.map((r) => places.get(r.name)), end);
    return Object.fromEntries(results.map((r) => [r.name, view(r).slice()]));
  }};
}}

// Fetch the module, and make its function.
export async function load(url = new URL("model.wasm", import.meta.url)) {{
  const bytes = await (await fetch(url)).arrayBuffer();
  const {{ instance }} = await WebAssembly.instantiate(bytes, {{}});
  return bind(instance);
}}
"""
PAGE = """\
<!doctype html>
<meta charset="utf-8">
<title>{name}</title>
<h1>{name}</h1>
<p>Arguments of ones give:</p>
<pre id="results"></pre>
<script type="module">
import {{ load, parameters }} from "./model.js";

const one = (p) => (p.array.startsWith("Big") ? 1n : 1);
const call = await load();
const given = Object.fromEntries(
  parameters.map((p) => [p.name, p.byValue ? one(p) : Array(p.size).fill(one(p))]));
const lines = Object.entries(call(given)).map(([name, x]) => `${{name}}: ${{x.join(" ")}}`);
document.getElementById("results").textContent = lines.join("\\n");
</script>
"""


def describe_parameter(p: Parameter) -> dict:
    """Return what the script says of an argument or a result."""
    pairs = 2 if p.kind.letter == "c" else 1
    return {
        "name": p.name,
        "array": ARRAYS[p.kind.name],
        "shape": list(p.aval.shape),
        "size": p.aval.size * pairs,
        "byValue": p.by_value,
    }


def write_list(parameters: list[dict]) -> str:
    """Return descriptions as an array of JavaScript, one on each line."""
    return "[\n" + "".join(f"  {json.dumps(p)},\n" for p in parameters) + "]"


def write_web(source: Source, module: bytes, folder: pathlib.Path) -> pathlib.Path:
    """Write the module, the script and the page to a folder."""
    parameters = [describe_parameter(p) for p in source.parameters]
    results = [describe_parameter(r) for r in source.results]
    used = sorted({p["array"] for p in (*parameters, *results)})
    script = SCRIPT.format(
        name=source.name,
        first=", ".join(r["name"] for r in results),
        listed=", ".join(p["name"] for p in parameters),
        parameters=write_list(parameters),
        results=write_list(results),
        arrays=", ".join(used),
        alignment=ALIGNMENT,
        workspace=source.workspace,
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.wasm").write_bytes(module)
    (folder / "model.js").write_text(script)
    (folder / "index.html").write_text(PAGE.format(name=source.name))
    return folder
