"""Reading datasets, batches and texts, for any framework."""
