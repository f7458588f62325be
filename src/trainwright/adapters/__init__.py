"""One adapter per kind of training: how it carries out the walk's requests (`base.Adapter`)."""
