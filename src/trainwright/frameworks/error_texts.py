"""Regular expressions for the frameworks' error messages."""

from __future__ import annotations

import re

# Keras rejects a layer's or a model's input (keras/src/layers/input_spec.py).
REFUSED_INPUT = re.compile(
    r"Input \d+(?: with name '(?P<input>[^']*)')? of layer ['\"](?P<layer>[^'\"]+)['\"] is incompatible with the layer: "
    r"expected (?P<what>ndim|min_ndim|max_ndim|shape|axis (?P<axis>-?\d+) of input shape to have value)[= ]"
    r"(?P<wanted>\([^)]*\)|-?\d+),? (?:found|but received input with) "
    r"(?:ndim=\d+\. Full shape received: |shape[= ]|ndim=)(?P<came>\([^)]*\)|\d+)"
)
# The same for a model whose declared Input has another number of axes (keras/src/models/functional.py).
INVALID_SHAPE = re.compile(
    r"Invalid input shape for input .*?with name '(?P<layer>[^']*)'.*?[Ee]xpected shape (?P<wanted>\([^)]*\)), "
    r"but input has incompatible shape (?:torch\.Size\()?(?P<came>[(\[][^)\]]*[)\]])",
    re.DOTALL,
)
# TensorFlow cannot stack rows.
UNEQUAL_ROWS = re.compile(r"different shapes in component \d+\. .*?shape \[(\d+)\b.*?shape \[(\d+)\b", re.DOTALL)
# In torch, a name holds a tensor instead of a function or a module.
SHADOWED = ("'Tensor' object is not callable", "cannot assign 'torch")
