"""The facts about an installation that a report of a bug has."""

import numpy as np
import scipy

import weft
from weft.api.environment import list_facts
from weft.cpu import kernels


def test_the_text_names_versions_devices_kernels_and_settings(capsys, monkeypatch):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    monkeypatch.setenv("WEFT_COORDINATOR_SECRET", "hidden")
    facts = dict(list_facts())
    assert facts["weft"] == weft.__version__ and facts["numpy"] == np.__version__
    assert facts["scipy"] == scipy.__version__
    assert f"{weft.device_count()} x cpu" in facts["devices"]
    assert facts["kernels"] == (kernels.load_kernels() or f"in use, of {kernels.FOLDER}")
    assert facts["threads"].endswith(" processors that may be used")
    assert facts["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    assert facts["WEFT_COORDINATOR_SECRET"] == "(set)"
    text = weft.print_environment_info(return_string=True)
    facts.pop("cache")  # other processes may write to it
    assert all(f"{name}:" in text and value in text for name, value in facts.items())
    assert weft.print_environment_info() is None
    assert capsys.readouterr().out.splitlines()[:10] == text.splitlines()[:10]


def test_options_that_are_not_the_default_are_named():
    with weft.config.scope(native=False, hints=False):
        facts = dict(list_facts())
    assert facts["kernels"] == "off (WEFT_NATIVE)"
    assert "native=False" in facts["options"] and "hints=False" in facts["options"]
