"""Reads the documents to measure: from a file, from standard input, or the bundled biographies.

A document is one line of text, one record of a `.jsonl` file or one row of a `.parquet` file.
Records may carry token ids instead of text, for models that come without a tokenizer. Everything is
read as a stream, so that taking a few documents of a large file costs a few documents.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from rankcollapse.errors import InputError, OptionError

Documents = list[str] | dict[str, list[list[int]]]
"""Texts, or token ids by the names that a Hugging Face tokenizer gives them."""

_Records = Iterator[tuple[str, dict[str, Any]]]

_TEXT = "text"
_IDS = "input_ids"
_BESIDE_IDS = ("attention_mask", "token_type_ids")
_ROWS_AT_ONCE = 256


def read_documents(
    source: str | Path, *, column: str | None = None, limit: int | None = None
) -> Documents:
    """Reads documents from a file or from standard input.

    Args:
        source: a `.txt` file with one document a line (blank lines are skipped), a `.jsonl` file
            with one JSON object a line, a `.parquet` file (needs pyarrow), or `-` for standard
            input with one document a line. All text is UTF-8.
        column: the field that holds the documents, for `.jsonl` and `.parquet`. By default `text`,
            or `input_ids` where there is no `text`.
        limit: read only so many documents, and nothing of the file behind them.

    Returns:
        The texts; or, where the column is `input_ids`, a mapping with `input_ids` and those of
        `attention_mask` and `token_type_ids` that are there, each a list of integers per document.

    Raises:
        InputError: the source is missing, a folder, of an unknown kind, not UTF-8 or not JSON, has
            no such column, or has an empty document or none at all.
        OptionError: `limit` is below 1, or `column` was given for plain text.
    """
    if limit is not None and limit < 1:
        raise OptionError(f"limit is {limit}, so no document would be read; give 1 or more.")
    if str(source) == "-":
        _refuse_column(column, "standard input")
        return _texts(_lines(sys.stdin.buffer, "standard input"), "standard input", limit)
    path = Path(source)
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a .txt, .jsonl or .parquet file in it.")
    if not path.exists():
        raise InputError(f"{path} does not exist; name a .txt, .jsonl or .parquet file.")
    match path.suffix.lower():
        case ".txt":
            _refuse_column(column, path)
            with _opened(path) as stream:
                return _texts(_lines(stream, path), path, limit)
        case ".jsonl":
            with _opened(path) as stream:
                return _documents(_json_records(stream, path), path, column, limit)
        case ".parquet":
            with _opened(path) as stream:
                return _documents(_parquet_records(stream, path, column), path, column, limit)
        case suffix:
            raise InputError(
                f"{path} has {f'the suffix {suffix}' if suffix else 'no suffix'}, which says "
                "nothing known about its contents; use .txt (a line each), .jsonl or .parquet."
            )


def biographies() -> list[str]:
    """Returns the 32 bundled biographies, each of at least 128 BERT tokens."""
    with resources.files("rankcollapse.inputs").joinpath("biographies.txt").open("rb") as stream:
        return [text for _, text in _lines(stream, "biographies.txt")]


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as stream:
            yield stream
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error


def _refuse_column(column: str | None, name: object) -> None:
    if column is not None:
        raise OptionError(
            f"column '{column}' was asked for, but {name} is plain text, one document a line; "
            "leave the column out or give a .jsonl or .parquet file."
        )


def _lines(stream: Iterable[bytes], name: object) -> Iterator[tuple[str, str]]:
    """Yields the place and the text of each line that is not blank."""
    for number, line in enumerate(stream, start=1):
        where = f"line {number} of {name}"
        try:
            # A byte order mark is no part of the first document.
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError as error:
            raise InputError(
                f"{where} is not UTF-8 (byte 0x{line[error.start]:02x}); convert the text to UTF-8."
            ) from error
        if text:
            yield where, text


def _texts(lines: Iterator[tuple[str, str]], name: object, limit: int | None) -> list[str]:
    texts = [text for _, text in islice(lines, limit)]
    if not texts:
        raise InputError(f"{name} has no text; give at least one document, one a line.")
    return texts


def _json_records(stream: Iterable[bytes], name: object) -> _Records:
    for where, line in _lines(stream, name):
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(
                f"{where} is not JSON ({error.msg}, column {error.colno}); "
                "write one JSON object a line."
            ) from error
        if not isinstance(record, dict):
            raise InputError(
                f"{where} is a JSON {type(record).__name__}, not an object; "
                f'write one object a line, such as {{"{_TEXT}": "..."}}.'
            )
        yield where, record


def _parquet_records(stream: BinaryIO, name: Path, column: str | None) -> _Records:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError as error:
        raise InputError(
            f"{name} needs pyarrow to be read, which is not installed; "
            "run: pip install 'rankcollapse[parquet]'."
        ) from error
    try:
        file = parquet.ParquetFile(stream)
        names = file.schema_arrow.names
        chosen = _choose(column, names, name)
        wanted = [n for n in names if n == chosen or (chosen == _IDS and n in _BESIDE_IDS)]
        number = 0
        for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=wanted):
            for record in batch.to_pylist():
                number += 1
                yield f"row {number} of {name}", record
    except arrow.ArrowException as error:
        raise InputError(f"{name} is not a readable parquet file: {error}.") from error


def _choose(column: str | None, names: Iterable[str], name: object) -> str:
    """Returns the column that holds the documents, given those that exist."""
    names = list(names)
    if column is None:
        column = _IDS if _IDS in names and _TEXT not in names else _TEXT
    if column not in names:
        raise InputError(
            f"{name} has no column '{column}', only {', '.join(names) or 'none at all'}; "
            "name one of them as the column."
        )
    return column


def _documents(records: _Records, name: object, column: str | None, limit: int | None) -> Documents:
    texts: list[str] = []
    ids: dict[str, list[list[int]]] = {}
    for where, record in islice(records, limit):
        column = _choose(column, record, where)
        if column != _IDS:
            texts.append(_text(record[column], column, where))
            continue
        keys = [_IDS, *(key for key in _BESIDE_IDS if record.get(key) is not None)]
        if ids and keys != list(ids):
            raise InputError(
                f"{where} has {', '.join(keys)} where the documents before it have "
                f"{', '.join(ids)}; give all documents the same columns."
            )
        for key in keys:
            ids.setdefault(key, []).append(_integers(record[key], key, where))
    if not texts and not ids:
        raise InputError(f"{name} has no documents; give at least one.")
    return texts or ids


def _text(value: object, column: str, where: str) -> str:
    if not isinstance(value, str):
        raise InputError(
            f"{where} has {type(value).__name__} in column '{column}' where text is expected; "
            "name another column."
        )
    if not value.strip():
        raise InputError(
            f"{where} has an empty text in column '{column}'; remove it from the file."
        )
    return value


def _integers(value: object, column: str, where: str) -> list[int]:
    # bool is a subclass of int, and no token id.
    if isinstance(value, list) and value and all(type(item) is int for item in value):
        return value
    raise InputError(
        f"{where} has no list of integers in column '{column}'; every document needs one."
    )
