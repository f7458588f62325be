"""The vocabulary of the walk: stages, facts, findings, rules, repairs, trials, reports. Standard library only."""
