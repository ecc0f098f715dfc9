"""Everything people look at: charts, the page, tables, sentences and the files that hold them.

A finished data set comes in; nothing here touches a model.
"""

from rankcollapse.report.chart import chart, charts
from rankcollapse.report.files import check_writable, write
from rankcollapse.report.findings import findings
from rankcollapse.report.page import page
from rankcollapse.report.rates import rate_sentences
from rankcollapse.report.summary import summarize, tidy
from rankcollapse.report.table import table

__all__ = [
    "chart",
    "charts",
    "check_writable",
    "findings",
    "page",
    "rate_sentences",
    "summarize",
    "table",
    "tidy",
    "write",
]
