"""Handwritten training loops, and steps that are run like one."""
