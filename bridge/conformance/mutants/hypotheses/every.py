"""All hypotheses, in the order in which they are tried."""

from __future__ import annotations

from bridge.conformance.mutants.hypotheses.call import Hypothesis
from bridge.conformance.mutants.hypotheses.decoding import DECODING
from bridge.conformance.mutants.hypotheses.masks import MASKS
from bridge.conformance.mutants.hypotheses.packed_and_paged import MERGED, PACKED, PAGED
from bridge.conformance.mutants.hypotheses.results import (
    DENOMINATORS,
    GRADIENTS,
    LOGARITHMS,
    LOOPS,
)
from bridge.conformance.mutants.hypotheses.scores import CHANGES, SCALES
from bridge.conformance.mutants.hypotheses.sizes import SIZES

# Hypotheses about one operation are tried where vectors of it fail.
HYPOTHESES: tuple[Hypothesis, ...] = (
    *PACKED, *PAGED, *MERGED, *DECODING, *SCALES, *MASKS, *CHANGES, *LOGARITHMS, *GRADIENTS,
    *SIZES, *DENOMINATORS, *LOOPS,
)  # fmt: skip
