"""A report for others: what was found, the smallest script that shows it, and nothing that is private."""
