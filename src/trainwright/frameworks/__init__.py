"""What is known of each framework's names: data, no framework is imported."""
