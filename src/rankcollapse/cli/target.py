"""`--target`: a token as text or as an id, with the position at which it is asked for."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rankcollapse.errors import OptionError

if TYPE_CHECKING:
    from rankcollapse.transformer import Transformer

SHOWN = 6


@dataclass(frozen=True)
class Target:
    """What was typed: a token's text or id, and a position, counted from the end if negative."""

    text: str
    id: int | None
    position: int

    @classmethod
    def parse(cls, typed: str) -> "Target":
        """Reads "cat", "cat@3", "#1234" or "#1234@-2"; the position is -1 unless given.

        Raises:
            OptionError: There is no token.
        """
        placed = re.fullmatch(r"(.+)@([-+]?\d+)", typed, re.DOTALL)
        text, position = (placed[1], int(placed[2])) if placed else (typed, -1)
        if not text:
            raise OptionError(
                "--target is empty; give a token as text or as an id like #1234, with @POSITION "
                "if not at the last token."
            )
        number = re.fullmatch(r"#(\d+)", text)
        return cls(text, int(number[1]) if number else None, position)

    def resolve(self, model: "Transformer") -> dict[str, Any]:
        """Returns `token` (its text), `id` and `position`.

        Raises:
            OptionError: The text is not one token of the model's tokenizer.
            TokenizerError: It is text and the model has no tokenizer.
        """
        if self.id is not None:
            return {"token": self.text, "id": self.id, "position": self.position}
        tokenizer = model.read_tokenizer()
        token = _token(self.text, tokenizer)
        return {"token": self.text, "id": token, "position": self.position}


def _token(text: str, tokenizer: Any) -> int:
    ids = tokenizer.encode(text, add_special_tokens=False)
    known = len(ids) == 1 and (ids[0] != tokenizer.unk_token_id or text == tokenizer.unk_token)
    if known:
        return int(ids[0])
    vocabulary = tokenizer.get_vocab()
    # Pieces that are never words of their own, such as "##ing".
    if text in vocabulary:
        return int(vocabulary[text])
    if len(ids) < 2:
        raise OptionError(
            f"--target {text!r} is no token of the tokenizer; give one that it has, or an id like "
            "#1234."
        )
    pieces = [repr(piece) for piece in tokenizer.convert_ids_to_tokens(ids)]
    shown = ", ".join(pieces[:SHOWN]) + (", ..." if len(pieces) > SHOWN else "")
    raise OptionError(
        f"--target {text!r} is {len(ids)} tokens of the tokenizer ({shown}); give a single one, "
        "or an id like #1234."
    )
