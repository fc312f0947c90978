"""A folder for the web: a program as WebAssembly, JavaScript that calls it, and a page."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Sequence

from weft.export.c.memory import ALIGNMENT
from weft.export.c.sizes import JAVASCRIPT, write_size
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
{sizes_note}
export const parameters = {parameters};
export const results = {results};
const arrays = {{ {arrays} }};
const alignment = {alignment};
const sizes = [{sizes}];

const align = (at) => Math.ceil(at / alignment) * alignment;

// Give each array a place in memory after `start`; the places, and where the workspace begins.
function place(start, given) {{
  let at = align(start);
  const places = new Map();
  for (const p of [...parameters, ...results]) {{
    if (p.byValue) continue;
    places.set(p.name, at);
    at = align(at + p.size(given) * arrays[p.array].BYTES_PER_ELEMENT);
  }}
  return [places, at];
}}

// Make the function of an instance of the module.
export function bind(instance) {{
  const {{ memory, __heap_base, _initialize }} = instance.exports;
  if (_initialize) _initialize();
  return (given) => {{
    for (const name of [...sizes, ...parameters.map((p) => p.name)])
      if (given[name] === undefined) throw new TypeError(`{name}: needs the argument ${{name}}`);
    const values = sizes.map((name) => given[name]);
    const workspace = {workspace};
    if (workspace < 0) throw new RangeError(`{name}: sizes must fit; got ${{values}}`);
    const [places, end] = place(__heap_base.value, given);
    const missing = end + workspace - memory.buffer.byteLength;
    if (missing > 0) memory.grow(Math.ceil(missing / 65536));
    const view = (p) => new arrays[p.array](memory.buffer, places.get(p.name), p.size(given));
    for (const p of parameters) {{
      const x = given[p.name];
      if (p.byValue) {{
        values.push(p.array.startsWith("Big") ? BigInt(x) : Number(x));
        continue;
      }}
      const size = p.size(given);
      if (x.length !== size)
        throw new RangeError(`{name}: ${{p.name}} needs ${{size}} elements; got ${{x.length}}`);
      view(p).set(x);
      values.push(places.get(p.name));
    }}
    instance.exports.{name}(...values, ...results.map((r) => places.get(r.name)), end);
    return Object.fromEntries(results.map((r) => [r.name, view(r).slice()]));
  }};
}}

// Fetch the module, or read its file under Node, and make its function.
export async function load(url = new URL("model.wasm", import.meta.url)) {{
  const isFile = new URL(url, import.meta.url).protocol === "file:" && globalThis.process;
  const bytes = isFile
    ? await (await import("node:fs/promises")).readFile(new URL(url, import.meta.url))
    : await (await fetch(url)).arrayBuffer();
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
const given = {sample};
for (const p of parameters) given[p.name] = p.byValue ? one(p) : Array(p.size(given)).fill(one(p));
const lines = Object.entries(call(given)).map(([name, x]) => `${{name}}: ${{x.join(" ")}}`);
document.getElementById("results").textContent = lines.join("\\n");
</script>
"""


def describe_parameter(p: Parameter, variables: str) -> str:
    """Return what the script says of an argument or a result, as an object of JavaScript."""
    pairs = 2 if p.kind.letter == "c" else 1
    shape = ", ".join(write_size(n, JAVASCRIPT) for n in p.aval.shape)
    size = write_size(p.aval.size * pairs, JAVASCRIPT)
    fields = {
        "name": json.dumps(p.name),
        "array": json.dumps(ARRAYS[p.kind.name]),
        "shape": f"({variables}) => [{shape}]",
        "size": f"({variables}) => {size}",
        "byValue": json.dumps(p.by_value),
    }
    return f"{{ {', '.join(f'{k}: {v}' for k, v in fields.items())} }}"


def write_list(parameters: Sequence[Parameter], variables: str) -> str:
    """Return descriptions as an array of JavaScript, one on each line."""
    rows = [f"  {describe_parameter(p, variables)},\n" for p in parameters]
    return f"[\n{''.join(rows)}]"


def write_script(source: Source) -> str:
    """Return the module of JavaScript."""
    every = [*source.parameters, *source.results]
    sizes = ", ".join(source.sizes)
    variables = f"{{ {sizes} }}" if sizes else ""
    note = ""
    if sizes:
        note = f"//\n// {sizes} are sizes: `shape` and `size` of arrays are functions of them.\n"
    measured = f"instance.exports.{source.name}_workspace(...values)"
    return SCRIPT.format(
        name=source.name,
        first=", ".join(r.name for r in source.results),
        listed=", ".join([*source.sizes, *[p.name for p in source.parameters]]),
        sizes_note=note,
        parameters=write_list(source.parameters, variables),
        results=write_list(source.results, variables),
        arrays=", ".join(sorted({ARRAYS[p.kind.name] for p in every})),
        alignment=ALIGNMENT,
        sizes=", ".join(json.dumps(n) for n in source.sizes),
        workspace=measured if sizes else source.workspace,
    )


def write_web(source: Source, module: bytes, folder: pathlib.Path) -> pathlib.Path:
    """Write the module, the script and the page to a folder."""
    sample = source.limits.find_sample().values()
    given = dict(zip(source.sizes, sample, strict=True))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.wasm").write_bytes(module)
    (folder / "model.js").write_text(write_script(source))
    (folder / "index.html").write_text(PAGE.format(name=source.name, sample=json.dumps(given)))
    return folder
