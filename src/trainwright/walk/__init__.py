"""What to do next, who does it, and what becomes of it: the plan, its drivers, and the report."""
