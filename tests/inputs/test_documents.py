"""Documents from files and standard input: what is read, how little of it, and each wrong input."""

import io
import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from rankcollapse.errors import InputError, OptionError
from rankcollapse.inputs.documents import biographies, read_documents


@pytest.fixture
def write(tmp_path):
    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def as_parquet(path: Path, columns: dict) -> Path:
    parquet.write_table(pa.table(columns), path)
    return path


def as_json_lines(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


class TestText:
    def test_one_document_a_line_without_blank_lines(self, write):
        path = write("a.txt", "first\n\n  second one \r\n\t\nthird")
        assert read_documents(path) == ["first", "second one", "third"]

    def test_path_as_string_and_upper_case_suffix(self, write):
        assert read_documents(str(write("A.TXT", "first\n"))) == ["first"]

    def test_byte_order_mark_is_not_part_of_the_text(self, write):
        assert read_documents(write("a.txt", b"\xef\xbb\xbffirst\nsecond\n")) == ["first", "second"]

    def test_other_unicode_line_breaks_stay_inside_a_document(self, write):
        assert read_documents(write("a.txt", "one\u2028still one\n")) == ["one\u2028still one"]

    def test_standard_input(self, monkeypatch):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("één\n\ntwo\n".encode())))
        assert read_documents("-") == ["één", "two"]

    def test_limit_reads_nothing_behind_it(self, write):
        path = write("a.txt", b"one\ntwo\n\xff\n")
        assert read_documents(path, limit=2) == ["one", "two"]
        with pytest.raises(InputError, match=r"line 3 of .*a\.txt is not UTF-8 \(byte 0xff\)"):
            read_documents(path, limit=3)

    @pytest.mark.parametrize("content", ["", "\n \n\t\n"])
    def test_without_text(self, write, content):
        with pytest.raises(InputError, match=r"a\.txt has no text"):
            read_documents(write("a.txt", content))

    def test_column_is_refused(self, write):
        with pytest.raises(OptionError, match=r"'body' was asked for, but .*a\.txt is plain text"):
            read_documents(write("a.txt", "one\n"), column="body")

    def test_column_is_refused_on_standard_input(self):
        with pytest.raises(OptionError, match="standard input is plain text"):
            read_documents("-", column="body")


class TestJsonLines:
    def test_text_is_the_default_column(self, write):
        path = write("a.jsonl", as_json_lines({"id": 1, "text": "one"}, {"text": " two "}))
        assert read_documents(path) == ["one", " two "]

    def test_blank_lines_are_skipped(self, write):
        assert read_documents(write("a.jsonl", '\n{"text": "one"}\n\n')) == ["one"]

    def test_named_column(self, write):
        path = write("a.jsonl", as_json_lines({"text": "no", "body": "yes"}))
        assert read_documents(path, column="body") == ["yes"]

    def test_text_wins_over_token_ids_unless_they_are_asked_for(self, write):
        path = write("a.jsonl", as_json_lines({"text": "one", "input_ids": [1, 2]}))
        assert read_documents(path) == ["one"]
        assert read_documents(path, column="input_ids") == {"input_ids": [[1, 2]]}

    def test_token_ids_with_what_stands_beside_them(self, write):
        records = [
            {"input_ids": [5, 6, 0], "attention_mask": [1, 1, 0], "labels": 1},
            {"input_ids": [7, 8], "attention_mask": [1, 1], "labels": 0},
        ]
        assert read_documents(write("a.jsonl", as_json_lines(*records))) == {
            "input_ids": [[5, 6, 0], [7, 8]],
            "attention_mask": [[1, 1, 0], [1, 1]],
        }

    def test_limit_reads_nothing_behind_it(self, write):
        path = write("a.jsonl", as_json_lines({"text": "one"}) + "broken")
        assert read_documents(path, limit=1) == ["one"]

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ('{"text": "one"}\n{"text": \n', r"line 2 of .*a\.jsonl is not JSON \(Expecting value"),
            ("[1, 2]\n", r"line 1 of .*a\.jsonl is a JSON list, not an object"),
            ('{"title": "a", "body": "b"}\n', r"line 1 .* no column 'text', only title, body"),
            ("{}\n", r"no column 'text', only none at all"),
            ('{"text": "a"}\n{"body": "b"}\n', r"line 2 .* no column 'text', only body"),
            ('{"text": 3}\n', r"line 1 .* has int in column 'text' where text is expected"),
            ('{"text": null}\n', r"has NoneType in column 'text'"),
            ('{"text": "a"}\n{"text": "  "}\n', r"line 2 .* has an empty text in column 'text'"),
            ("", r"a\.jsonl has no documents"),
            ('{"input_ids": "abc"}\n', r"line 1 .* no list of integers in column 'input_ids'"),
            ('{"input_ids": [1.5]}\n', r"no list of integers in column 'input_ids'"),
            ('{"input_ids": [true, false]}\n', r"no list of integers in column 'input_ids'"),
            ('{"input_ids": []}\n', r"no list of integers in column 'input_ids'"),
            (
                '{"input_ids": [1, 2]}\n{"input_ids": [1], "attention_mask": [1]}\n',
                r"line 2 .* has input_ids, attention_mask where the documents before it have "
                "input_ids",
            ),
            (
                '{"input_ids": [1], "attention_mask": [1]}\n{"input_ids": [1, 2]}\n',
                r"line 2 .* has input_ids where the documents before it have input_ids, attention",
            ),
            (b'{"text": "a"}\n{"text": "\xe9"}\n', r"line 2 of .*a\.jsonl is not UTF-8"),
        ],
    )
    def test_wrong_input(self, write, content, message):
        with pytest.raises(InputError, match=message):
            read_documents(write("a.jsonl", content))


class TestParquet:
    def test_text_is_the_default_column(self, tmp_path):
        path = as_parquet(tmp_path / "a.parquet", {"id": [1, 2], "text": ["one", "two"]})
        assert read_documents(path) == ["one", "two"]

    def test_named_column_and_limit(self, tmp_path):
        path = as_parquet(tmp_path / "a.parquet", {"body": [f"number {n}" for n in range(1000)]})
        assert read_documents(path, column="body", limit=300) == [f"number {n}" for n in range(300)]
        assert len(read_documents(path, column="body")) == 1000

    def test_token_ids(self, tmp_path):
        columns = {"input_ids": [[1, 2, 3], [4, 5]], "attention_mask": [[1, 1, 1], [1, 1]]}
        path = as_parquet(tmp_path / "a.parquet", {**columns, "label": [0, 1]})
        assert read_documents(path) == columns

    def test_missing_column_names_those_that_exist(self, tmp_path):
        path = as_parquet(tmp_path / "a.parquet", {"title": ["a"], "body": ["b"]})
        with pytest.raises(InputError, match=r"a\.parquet has no column 'text', only title, body"):
            read_documents(path)

    def test_empty_text_names_its_row(self, tmp_path):
        path = as_parquet(tmp_path / "a.parquet", {"text": ["one", ""]})
        with pytest.raises(InputError, match=r"row 2 of .*a\.parquet has an empty text"):
            read_documents(path)

    def test_no_rows(self, tmp_path):
        path = as_parquet(tmp_path / "a.parquet", {"text": pa.array([], pa.string())})
        with pytest.raises(InputError, match=r"a\.parquet has no documents"):
            read_documents(path)

    def test_not_a_parquet_file(self, write):
        with pytest.raises(InputError, match=r"a\.parquet is not a readable parquet file"):
            read_documents(write("a.parquet", "text"))

    def test_without_pyarrow_says_how_to_get_it(self, tmp_path, monkeypatch):
        path = as_parquet(tmp_path / "a.parquet", {"text": ["one"]})
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(InputError, match=r"pip install 'rankcollapse\[parquet\]'"):
            read_documents(path)


class TestSource:
    def test_missing(self, tmp_path):
        with pytest.raises(InputError, match=r"nothing\.txt does not exist"):
            read_documents(tmp_path / "nothing.txt")

    def test_folder(self, tmp_path):
        with pytest.raises(InputError, match=r"is a folder; name a \.txt"):
            read_documents(tmp_path)

    @pytest.mark.parametrize(
        ("name", "message"), [("a.csv", "has the suffix .csv"), ("notes", "has no suffix")]
    )
    def test_unknown_kind(self, write, name, message):
        with pytest.raises(InputError, match=message):
            read_documents(write(name, "text"))

    def test_unreadable(self, write, monkeypatch):
        path = write("a.txt", "one\n")

        def refuse(*_, **__):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", refuse)
        with pytest.raises(InputError, match=r"a\.txt cannot be read: Permission denied"):
            read_documents(path)

    @pytest.mark.parametrize("limit", [0, -1])
    def test_limit_below_one(self, write, limit):
        with pytest.raises(OptionError, match=f"limit is {limit}"):
            read_documents(write("a.txt", "one\n"), limit=limit)


def test_there_are_32_different_biographies_on_one_line_each():
    texts = biographies()
    assert len(texts) == len(set(texts)) == 32
    assert all(len(text.split()) > 100 and "\n" not in text for text in texts)
