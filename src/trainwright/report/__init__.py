"""Renderers: they read a Report and decide nothing."""

from importlib import import_module

from trainwright.core.report import shown_as

shown_as |= {
    "html": lambda report: import_module("trainwright.report.html").fragment(report),
    "text": lambda report: import_module("trainwright.report.words").short(report),
}
