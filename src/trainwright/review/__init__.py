"""Questions that a record is asked, one file each; and the verdict and the sheet that it gives."""
