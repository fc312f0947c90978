"""Written by tools/make_stubs.py; do not edit."""

from weft.experimental import checkify as checkify
from weft.api.callbacks import io_callback as io_callback
from weft.experimental import jet as jet
from weft.experimental import key_reuse as key_reuse
from weft.experimental import layout as layout
from weft.experimental import mesh_utils as mesh_utils
from weft.experimental import multihost_utils as multihost_utils
from weft.experimental import ode as ode
from weft.experimental import optimizers as optimizers
from weft.experimental import pjit as pjit
from weft.experimental import rnn as rnn
from weft.experimental import shard_map as shard_map
from weft.experimental import stax as stax
