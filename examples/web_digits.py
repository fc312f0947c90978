"""Draw a digit with the mouse: the network of digits.py answers at each stroke, in a browser.

The network is trained as in digits.py. What runs in the page is one function of a drawing of
64 x 64 points: it cuts the digit out, counts its inked points in blocks, as the training data was
made, and gives ten probabilities. `export.to_c` writes it in C, with the weights in it, and
`to_web` compiles it to WebAssembly. To see the page:
`python -m http.server -d examples/out/web_digits`. Needs zig (`pip install weft[c]`). Exits with
status 1 when the accuracy on held-out digits, drawn large, is 95% or less.

usage: python examples/web_digits.py [--epochs 30] [--seed 0] [--out examples/out]
"""

import sys
from pathlib import Path

import digits
import numpy as np
from common import BLUE, FAINT, arguments, axes, image, save, verdict

import weft.numpy as jnp
from weft import export

SIDE, CELLS = 64, 32  # points of a drawing, and of the digit that is cut out of it
GOAL = 0.95
PAGE = Path(__file__).resolve().with_name("web_digits.html")


def cut_out(ink):
    """The digit of a drawing as 64 pixels: its inked points, of 16 in a block of 4 x 4."""
    rows, columns = jnp.any(ink > 0, 1), jnp.any(ink > 0, 0)
    ends = [(jnp.argmax(m), SIDE - jnp.argmax(m[::-1])) for m in (rows, columns)]
    size = jnp.maximum(ends[0][1] - ends[0][0], ends[1][1] - ends[1][0])  # the digit stays upright
    steps = (jnp.arange(CELLS) + 0.5) / CELLS - 0.5
    y, x = ((low + high) / 2 + steps * size for low, high in ends)
    inside = lambda at: (at >= 0) & (at < SIDE)
    cells = ink[y.astype(int)[:, None], x.astype(int)] * (inside(y)[:, None] & inside(x))
    return (cells > 0).reshape(8, 4, 8, 4).mean((1, 3)).reshape(64)


def answer(params, ink):
    """The probabilities of the ten digits for a drawing, and the pixels that the network saw."""
    pixels = cut_out(ink)
    return {"probabilities": jnp.exp(digits.log_probabilities(params, pixels)), "pixels": pixels}


def draw_large(counts):
    """A drawing of 64 x 64 points from the counts of a digit, with as many points in each block."""
    order = np.argsort(np.add.outer((np.arange(8) - 3.5) ** 2, (np.arange(8) - 3.5) ** 2).ravel())
    rank = np.empty(64, int)
    rank[order] = np.arange(64)
    inked = rank.reshape(8, 8)[None, :, None, :] < 4 * counts.reshape(8, 1, 8, 1)
    return inked.reshape(SIDE, SIDE).astype(np.float32)


def write_page(params, folder):
    """Write the page to a folder, and return the program in C."""
    program = export.to_c(lambda ink: answer(params, ink), name="digit")(
        np.zeros((SIDE, SIDE), "f")
    )
    program.to_web(folder)
    (folder / "index.html").write_text(PAGE.read_text())
    return program


def main():
    """Train, write the page, check what it computes; 0 when the goal is met."""
    args = arguments(__doc__, epochs=30)
    rng = np.random.default_rng(args.seed)
    train_set, held_out = digits.load_data(rng)
    params, _ = digits.train(args.epochs, rng, train_set, held_out)
    folder = args.out / "web_digits"
    program = write_page(params, folder)
    print(f"{program.report()}\nmodel.wasm {(folder / 'model.wasm').stat().st_size} bytes")

    call = program.build()  # the same source, for this machine
    pixels, labels = held_out
    drawings = np.stack([draw_large(16 * x) for x in pixels])
    found = [call(ink) for ink in drawings]
    chosen = np.array([f["probabilities"].argmax() for f in found])
    accuracy = (chosen == labels).mean()
    print(f"accuracy {accuracy:.1%} on {len(labels)} digits drawn large")

    figure, panels = axes(2, 6, size=(11, 4))
    for k, (top, low) in enumerate(panels.T):
        image(top, drawings[k])
        low.bar(range(10), found[k]["probabilities"], color=BLUE)
        low.set(ylim=(0, 1), xticks=range(10), yticks=[], facecolor=FAINT)
    save(figure, args.out / "web_digits.png")
    return verdict("web_digits", accuracy > GOAL, f"accuracy above {GOAL:.0%}")


if __name__ == "__main__":
    sys.exit(main())
