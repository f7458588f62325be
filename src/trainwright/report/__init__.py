"""Renderers: they read a Report and decide nothing."""
