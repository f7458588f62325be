"""The close look at the first updates of a training that runs as it is: fills the stages' facts; nothing is repeated."""
