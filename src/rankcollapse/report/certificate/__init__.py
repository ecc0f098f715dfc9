"""A certificate as charts, tables, sentences, a page and the files that hold them."""

from rankcollapse.report.certificate.cells import legend
from rankcollapse.report.certificate.chart import chart, charts
from rankcollapse.report.certificate.document import json_document
from rankcollapse.report.certificate.files import NAMES, write
from rankcollapse.report.certificate.findings import alarms, findings
from rankcollapse.report.certificate.page import page
from rankcollapse.report.certificate.summary import tidy, variant_name
from rankcollapse.report.certificate.table import hypotheses_tables, tables

__all__ = [
    "NAMES",
    "alarms",
    "chart",
    "charts",
    "findings",
    "hypotheses_tables",
    "json_document",
    "legend",
    "page",
    "tables",
    "tidy",
    "variant_name",
    "write",
]
