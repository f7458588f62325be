"""Reading data sets, batches and texts, whatever the framework."""
