"""Charts as SVG, PNG and PDF files.

Powers of ten get true raised digits: the superscript characters that serve a browser are missing
from many of the fonts that pictures are drawn with.
"""

import re

import altair as alt
import vl_convert

from rankcollapse.report.numbers import THIN_SPACE, plain_digits

PNG_SCALE = 2.0

_POWER = re.compile(rf"10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹{THIN_SPACE}]+)<")
_RAISED = r'10<tspan dy="-0.42em" font-size="75%">{}</tspan><'


def svg(drawing: alt.TopLevelMixin) -> str:
    """Return the chart as an SVG document."""
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    text = vl_convert.vegalite_to_svg(drawing.to_dict(), vl_version=version)
    return _POWER.sub(lambda found: _RAISED.format(plain_digits(found[1])), text)


def png(drawing: alt.TopLevelMixin) -> bytes:
    """Return the chart as a PNG image of twice its size in pixels."""
    return vl_convert.svg_to_png(svg(drawing), scale=PNG_SCALE)


def pdf(drawing: alt.TopLevelMixin) -> bytes:
    """Return the chart as a PDF document of one page."""
    return vl_convert.svg_to_pdf(svg(drawing))
