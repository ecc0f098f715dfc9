"""Token ids of texts without anyone's vocabulary: every word and every sign is a token.

For a model at random initialisation that will do. The embeddings of all ids are drawn alike, so
ids have no meaning, and all that matters of a text is how long it is and which tokens are equal.
"""

import re
from collections.abc import Sequence

# Below are the ids of special tokens in the vocabularies that models come with.
_FIRST = 1000


def word_ids(
    texts: Sequence[str],
    tokens: int,
    before: tuple[int, ...] = (),
    after: tuple[int, ...] = (),
    lowercase: bool = False,
) -> list[list[int]]:
    """Returns each text's first `tokens` token ids, special tokens counted.

    Args:
        texts: What to take apart; the same word has the same id in all of them.
        tokens: How many ids a text gets; fewer if it is shorter.
        before: Ids that every text begins with.
        after: Ids that every text ends with.
        lowercase: Whether "The" is the same word as "the".

    Example:
        >>> word_ids(["A cat, a dog.", "A dog."], 6, before=(1,), after=(2,))
        [[1, 1000, 1001, 1002, 1003, 2], [1, 1000, 1004, 1005, 2]]
    """
    known: dict[str, int] = {}
    room = tokens - len(before) - len(after)
    ids = []
    for text in texts:
        words = re.findall(r"\w+|[^\w\s]", text.lower() if lowercase else text)
        own = [known.setdefault(word, _FIRST + len(known)) for word in words]
        ids.append([*before, *own[:room], *after])
    return ids
