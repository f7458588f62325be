"""The Hugging Face Trainer."""
