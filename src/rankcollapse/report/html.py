"""What every page is made of: its surroundings, the charting library, the two colour schemes."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import altair as alt
import jinja2
import vl_convert

from rankcollapse.report.style import DARK, LIGHT, css_variables

# Restated in the page for a reader who saves or forwards it: it may load nothing.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'unsafe-inline'; img-src data: blob:"
)


def render(template: str, specs: Mapping[str, Any], **context: Any) -> str:
    """Return a page as one HTML document that needs no network.

    Args:
        template: its file in the templates' folder; it includes `style.html.j2` and
            `draw.html.j2`.
        specs: the charts by name, each drawn into the element "chart-NAME".
        context: what else the template names; everything is escaped.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rankcollapse.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(
        policy=POLICY,
        specs=_script_json(specs),
        library=_library(),
        light=css_variables(LIGHT),
        dark=css_variables(DARK),
        **context,
    )


def _script_json(value: object) -> str:
    """Return JSON that cannot end or open anything inside a script element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _library() -> str:
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", version)
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")
