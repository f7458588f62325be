"""Questions that a record is asked, one file each."""
