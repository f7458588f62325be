"""The data that `fit` was given to train and validate on."""
