"""One step of a Keras model, watched from outside."""
