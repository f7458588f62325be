"""Thresholds that the rules of a check and the review of a rehearsal share."""

from __future__ import annotations

# Four rows out of five: always answering that class looks like a result.
DOMINATES = 0.8
# A part of a loss beside the others. Two orders of magnitude: smaller differences between unweighted terms are common, and all
# terms are learned.
OUTWEIGHS = 100.0
