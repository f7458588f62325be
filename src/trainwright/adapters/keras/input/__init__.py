"""What `fit` was given to train and validate on."""
