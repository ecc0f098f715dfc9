"""A decomposition into paths as charts, tables, sentences, a page and the files that hold them."""

from rankcollapse.report.decomposition.chart import chart, charts
from rankcollapse.report.decomposition.document import json_document
from rankcollapse.report.decomposition.files import NAMES, write
from rankcollapse.report.decomposition.findings import findings
from rankcollapse.report.decomposition.page import page
from rankcollapse.report.decomposition.summary import tidy, variant_name
from rankcollapse.report.decomposition.table import heads_table, table
from rankcollapse.report.decomposition.target import name_target

__all__ = [
    "NAMES",
    "chart",
    "charts",
    "findings",
    "heads_table",
    "json_document",
    "name_target",
    "page",
    "table",
    "tidy",
    "variant_name",
    "write",
]
