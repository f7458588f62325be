"""How we measure ourselves, on programs that the rules were not written with: README.md."""
