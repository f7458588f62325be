"""Whether a training learns, measured for any framework."""
