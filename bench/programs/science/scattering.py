"""Self-energies of scattering: sums over momenta, energies and neighbours of products of matrices.

Source: the electron-phonon term of the self-consistent Born approximation (M. Luisier and G.
Klimeck, Phys. Rev. B 80, 2009): sigma[k, e, a] += H G[k - q, e - w, neighbour] H D[q, w, a, b].
"""

import numpy as np

sizes = {"small": (2, 4, 2, 3, 6, 3), "medium": (3, 10, 3, 4, 16, 4), "large": (4, 20, 4, 6, 24, 4)}


def make(size, rng):
    k, e, w, orbitals, atoms, neighbours = sizes[size]

    def complexes(*shape):
        return (rng.randn(*shape) + 1j * rng.randn(*shape)).astype("complex64")

    near = rng.randint(0, atoms, (atoms, neighbours)).astype(np.int32)
    hams = complexes(atoms, neighbours, orbitals, orbitals)
    green = complexes(k, e, atoms, orbitals, orbitals)
    return near, hams, green, complexes(k, w, atoms, neighbours)


def numpy_form(near, hams, green, phonons):
    sigma = np.zeros_like(green)
    ks, es, atoms = green.shape[:3]
    for q in range(ks):
        for w in range(phonons.shape[1]):
            for k in range(ks):
                for e in range(w, es):
                    for a in range(atoms):
                        inner = hams[a] @ green[k - q, e - w, near[a]] @ hams[a]
                        sigma[k, e, a] += (phonons[q, w, a, :, None, None] * inner).sum(0)
    return sigma


def jax_form(jax, near, hams, green, phonons):
    jnp = jax.numpy
    neighbours = green[:, :, near]  # momentum, energy, atom, neighbour, two orbitals
    inner = hams @ neighbours @ hams
    sigma = jnp.zeros_like(green)
    ks, es = green.shape[:2]
    for q in range(ks):
        for w in range(phonons.shape[1]):
            moved = jnp.roll(inner, q, 0)[:, : es - w]
            sigma = sigma.at[:, w:].add(jnp.einsum("keabij,ab->keaij", moved, phonons[q, w]))
    return sigma


tolerance = 1e-3
