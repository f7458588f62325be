"""What is measured of each kind of training, and how its first steps are taken again."""
