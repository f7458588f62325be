"""The walk: the plan of what to do next, the driver that does it, and the report."""
