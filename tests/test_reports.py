"""Programs as people report them to JAX give what JAX gives, or what is right where JAX is wrong.

tests/golden/reports.json has JAX's answers; `python tools/make_reports.py` writes it. REASONS
has the programs whose answers differ; docs/coming-from-jax.md says the same to users.
"""

import collections
import json
import math
import warnings

import pytest

import weft
import weft.export
import weft.scipy.cluster
import weft.scipy.fft
import weft.scipy.integrate
import weft.scipy.interpolate
import weft.scipy.linalg
import weft.scipy.ndimage
import weft.scipy.optimize
import weft.scipy.signal
import weft.scipy.sparse.linalg
import weft.scipy.spatial.transform
import weft.scipy.special
import weft.scipy.stats
from tests import reports
from weft import config

ANSWERS = json.loads(reports.ANSWERS.read_text())
TOLERANCES = {"float16": 4e-3, "bfloat16": 2e-2, "float64": 1e-9}
ROUNDED = "signs of zeros, the last bits, or an order that is not promised"
# Programs by the reason for which their answers differ from JAX's.
REASONS = {
    "computed here, where JAX raises": """
        assoc/axis_neg at/bool_add at/bool_mul lax/psum_groups lax/pmax_grad lax/ppermute
        linalg0/rank0 linalg0/hist0 roll/pad_dict roll/split_idx roll/ix_ int/pyint_big
        int/round_neg nn/silu_int nn/vs_0 ref/mask ref/at ref/oob export/sym_mod export/fori
        export/vmap_of""",
    "Python numbers take the dtype of the array beside them": """
        lax/add_sc_i lax/clamp_bad lax/reduce_f""",
    "refused here, as not meant": """
        scan/length_f random/fold_f take/bool ref/freeze_use roll/float nn/attn_rank
        fft/conv_pref""",
    "a tuple here, a list in JAX": """
        sort/topk sort/topk_0 sort/topk_axis sort/topk_bf16 sort/topk_bool sort/topk_i sort/topk_u
        vmap/top_k sort/approx linalg0/schur""",
    "right here": """
        ad/logsumexp_b grad/logaddexp_ninf grad/pow00 lax/digamma take/i8_idx sort/quantile_inf
        fft/ihfft int/div0 int/udiv0 int/frexp int/modf int/mod_negzero int/cplx_pow0 int/cplx_sqrt
        nn/stats""",
    "no derivative exists where the value is inf": "grad/kl_div",
    "an array here, a Python number in JAX": "ad/jvp_aux scan/float0_ys scan/np_xs",
    "weak types": """
        ad/pow_int_arr grad/expi grad/pow02 int/cplx_round nn/selu export/call export/vjp
        export/vjp2 export/scan export/pytree export/int_vjp export/double export/jit_of""",
    "sizes are written in another order": "export/sym_ops export/sym_parse",
    ROUNDED: """
        grad/det_sing grad/sinc0 grad/qr sort/partition linalg0/eigh_tri roll/poly""",
    "another class of errors": "ad/grad_argnums_dup export/pool",
}
DIFFERENT = {name for names in REASONS.values() for name in names.split()}

GROUPS = collections.defaultdict(dict)
for name, text in reports.read_programs().items():
    GROUPS[name.partition("/")[0]][name] = text
PARTS = [(group, i) for group, texts in GROUPS.items() for i in range(-(-len(texts) // 10))]


def find_difference(got, want):
    """Say how a description differs from another one; None if it does not."""
    if "error" in want or "error" in got:
        if not ("error" in want and "error" in got):
            return f"{str(got)[:300]} in place of {str(want)[:300]}"
        return None if want["error"][0] in got["error"] or not is_builtin(want["error"]) else got
    if got[0] != want[0] or len(got) != len(want):
        return f"{got[0]} in place of {want[0]}"
    for x, y in zip(got[1:], want[1:], strict=True):
        tolerance = TOLERANCES.get(y[0].partition("[")[0].rstrip("~"), 2e-5)
        if x[0] != y[0] or len(x) != len(y):
            return f"{x[0]} in place of {y[0]}"
        sizes = [abs(b) for b in y[1:] if isinstance(b, float) and math.isfinite(b)]
        near = max(3e-7, tolerance * max(sizes, default=0.0))
        if not all(is_close(a, b, tolerance, near) for a, b in zip(x[1:], y[1:], strict=True)):
            return f"{x[:12]} in place of {y[:12]}"
    return None


def is_builtin(mro):
    return mro[0] in {"ValueError", "TypeError", "IndexError", "OverflowError", "AttributeError"}


def is_close(a, b, tolerance, near):
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        if a == b:
            return math.copysign(1, a) == math.copysign(1, b)
        return math.isclose(a, b, rel_tol=tolerance, abs_tol=near)
    return a == b


@pytest.mark.sample(one_in=12)
@pytest.mark.parametrize(("group", "part"), PARTS)
def test_program(group, part):
    wrong = []
    with config.scope(threefry_partitionable=True, check_bounds=False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = reports.make_names(weft)
        for name, text in [*GROUPS[group].items()][10 * part : 10 * part + 10]:
            found = find_difference(reports.run_program(weft, names, text), ANSWERS[name])
            if bool(found) != (name in DIFFERENT) and name not in REASONS[ROUNDED].split():
                wrong.append(f"{name}: {text}: {found or 'as JAX, and not as DIFFERENT says'}")
    assert not wrong, "\n".join(wrong)
