"""One training loop each: how the walk's requests are done there (`base.Adapter`)."""
