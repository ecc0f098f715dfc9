"""What theory says of a model, put beside what was measured."""

from rankcollapse.theory.rate import Rate, expected_rate, rates

__all__ = ["Rate", "expected_rate", "rates"]
