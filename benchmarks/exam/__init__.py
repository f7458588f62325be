"""The field exam: sound programs, planted faults, and whether a walk finds them."""
