"""Where Trainwright stands between the user's pipeline and its framework: the only place that patches anything."""
