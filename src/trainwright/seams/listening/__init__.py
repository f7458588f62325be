"""What a script builds and calls on its way to training, noted as it happens."""
