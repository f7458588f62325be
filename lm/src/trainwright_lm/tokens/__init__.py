"""Text as token ids, on disk and back."""
