"""The HTML report: one self-contained static page that shows what a clustering found."""

from cceclust.report.page import write_report

__all__ = ["write_report"]
