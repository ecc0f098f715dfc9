"""The counts of paths as a chart, a table, a page and the files that hold them."""

from rankcollapse.report.paths.chart import chart
from rankcollapse.report.paths.files import NAMES, write
from rankcollapse.report.paths.page import page
from rankcollapse.report.paths.summary import summarize, tidy
from rankcollapse.report.paths.table import table

__all__ = ["NAMES", "chart", "page", "summarize", "table", "tidy", "write"]
