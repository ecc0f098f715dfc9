"""Every error that bad input can cause: one sentence naming the thing, what came and the remedy.

`RankCollapseError` is what callers catch and what the command line turns into exit code 2.
Anything else that escapes is a defect of this package.
"""


class RankCollapseError(Exception):
    """Base of all errors that the caller can mend."""


class UnsupportedModelError(RankCollapseError):
    """The model's type or one of its configuration's settings has no adapter here."""


class CheckpointError(RankCollapseError):
    """A checkpoint is absent, truncated, misshapen, needs pickle, or holds NaN or infinity."""


class TokenizerError(RankCollapseError):
    """Text was given but the model comes without a tokenizer that can be loaded."""


class InputError(RankCollapseError):
    """Text or ids cannot be measured: empty, too long, beyond the vocabulary, all padding."""


class OptionError(RankCollapseError):
    """An option has a value that does not exist, such as a variant, metric, dtype or device."""


class OutputError(RankCollapseError):
    """The results cannot be written where they were asked for."""
