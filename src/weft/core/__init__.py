"""The language: types, traces, primitives and jaxprs. Importing it attaches their printing."""

from weft.core import pretty as pretty
