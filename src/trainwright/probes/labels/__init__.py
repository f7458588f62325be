"""Whether labels belong to their inputs."""
