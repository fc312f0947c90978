"""sax: an optical circuit, and the derivative of its transmission."""

import jax
import jax.numpy as jnp
import sax


def coupler(coupling=0.5) -> sax.SDict:
    kappa, tau = coupling**0.5, (1 - coupling) ** 0.5
    return sax.reciprocal(
        {
            ("in0", "out0"): tau,
            ("in0", "out1"): 1j * kappa,
            ("in1", "out0"): 1j * kappa,
            ("in1", "out1"): tau,
        }
    )


def waveguide(wl=1.55, neff=2.34, ng=3.4, length=10.0) -> sax.SDict:
    index = neff - (wl - 1.55) * (ng - neff) / 1.55
    return sax.reciprocal({("in0", "out0"): jnp.exp(2j * jnp.pi * index * length / wl)})


mzi, info = sax.circuit(
    netlist={
        "instances": {"lft": "coupler", "top": "waveguide", "btm": "waveguide", "rgt": "coupler"},
        "connections": {
            "lft,out0": "btm,in0",
            "btm,out0": "rgt,in0",
            "lft,out1": "top,in0",
            "top,out0": "rgt,in1",
        },
        "ports": {"in0": "lft,in0", "in1": "lft,in1", "out0": "rgt,out0", "out1": "rgt,out1"},
    },
    models={"coupler": coupler, "waveguide": waveguide},
)
wl = jnp.linspace(1.53, 1.57, 9)
print(jnp.abs(mzi(wl=wl, top={"length": 25.0}, btm={"length": 15.0})["in0", "out0"]) ** 2)


@jax.jit
@jax.value_and_grad
def loss(length):
    s = mzi(wl=wl, top={"length": length}, btm={"length": 15.0})
    return jnp.mean(jnp.abs(s["in0", "out0"]) ** 2)


print(loss(25.0))
print(sax.sdense(mzi())[0].shape)
