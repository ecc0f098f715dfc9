"""Which parts of every block are off, under one meaning in all families (docs/variants.md).

A variant is a value passed to the forward pass; no model is edited.
"""

import re
from dataclasses import dataclass

from rankcollapse.errors import OptionError

PARTS: dict[str, str] = {
    "attention_skip": "the attention sub-layer's skip connection: A(x) in place of x + A(x)",
    "mlp": "the whole MLP sub-layer, its skip and norm included: y = a",
    "mlp_skip": "the MLP sub-layer's skip connection: M(a) in place of a + M(a)",
    "attention_norm": "the attention sub-layer's norm: the identity in its place",
    "mlp_norm": "the MLP sub-layer's norm: the identity in its place",
    "final_norm": "the norm after the last block",
    "mlp_projections": "the MLP's linear maps: M(a) = act(a)",
}

NAMED: dict[str, frozenset[str]] = {
    "transformer": frozenset(),
    "san": frozenset({"attention_skip", "mlp"}),
    "san+mlp": frozenset({"attention_skip", "mlp_skip"}),
    "san+skip": frozenset({"mlp"}),
}

_ALIASES = {"norm": frozenset({"attention_norm", "mlp_norm", "final_norm"})}


@dataclass(frozen=True)
class Variant:
    """A name and the parts it switches off; `part in variant` asks whether a part stays on."""

    name: str
    off: frozenset[str]

    @classmethod
    def parse(cls, name: str) -> "Variant":
        """Reads "san", "-mlp_skip", "-attention_skip-mlp_norm" or "san-attention_norm".

        Raises:
            OptionError: The name or one of its parts does not exist.
        """
        if not isinstance(name, str):
            raise OptionError(f"variant {name!r} is no name: use text such as 'san'.")
        base, *parts = name.strip().split("-")
        known = {**{part: frozenset({part}) for part in PARTS}, **_ALIASES}
        unknown = [part for part in parts if part not in known]
        if unknown or base not in {*NAMED, ""} or not re.sub("-", "", name).strip():
            wrong = f" ({unknown[0]!r})" if unknown and unknown[0] != name else ""
            raise OptionError(
                f"variant {name!r} is not known{wrong}: use one of {', '.join(NAMED)}, or "
                f"spell what is off, such as '-mlp_skip', from {', '.join(known)}."
            )
        off = NAMED[base or "transformer"].union(*(known[part] for part in parts))
        return cls(name.strip(), off)

    def __contains__(self, part: str) -> bool:
        return part not in self.off

    def as_published(self, family: str) -> "Variant":
        """The same variant under the surgery of the paper's code (docs/variants.md).

        That surgery never removed the MLP's skip, so "san+mlp" keeps it. In ALBERT it could not
        remove the MLP: it left the activation, with its skip and its norm, in its place.
        """
        if self.name not in NAMED:
            return self
        off = self.off - {"mlp_skip"}
        if family == "albert" and "mlp" in off:
            off = off - {"mlp"} | {"mlp_projections"}
        return Variant(self.name, off)

    def formula(self, placement: str) -> str:
        """The block's equations with what is off left out, for a "pre" or "post" norm block."""
        post = placement == "post"

        def sublayer(x: str, function: str, norm: str, kind: str) -> str:
            normed = f"{norm}_norm" in self
            number = "₁" if norm == "attention" else "₂"
            inner = f"N{number}({x})" if normed and not post else x
            branch = f"{function}({inner})"
            total = f"{x} + {branch}" if f"{kind}_skip" in self else branch
            return f"N{number}({total})" if normed and post else total

        first = sublayer("x", "A", "attention", "attention")
        if "mlp" not in self:
            return f"y = {first}"
        function = "M" if "mlp_projections" in self else "act"
        return f"a = {first}; y = {sublayer('a', function, 'mlp', 'mlp')}"


def parse_variants(names: "str | tuple[str, ...] | list[str]") -> tuple[Variant, ...]:
    """Reads several variants, from a sequence or from one comma-separated string.

    Raises:
        OptionError: There is none, one is unknown, or one comes twice.
    """
    parts = names.split(",") if isinstance(names, str) else list(names)
    if not parts:
        raise OptionError(f"no variant was given: use at least one of {', '.join(NAMED)}.")
    variants = tuple(Variant.parse(part) for part in parts)
    seen: set[str] = set()
    for variant in variants:
        if variant.name in seen:
            raise OptionError(f"variant {variant.name!r} was given twice: give each once.")
        seen.add(variant.name)
    return variants
