"""The theory's bounds for a model's own weights and text, beside the measurement."""

from rankcollapse.certification.certify import certify

__all__ = ["certify"]
