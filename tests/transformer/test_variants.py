"""What a variant's name switches off, and the equations it prints."""

import itertools
import re

import pytest

from rankcollapse.errors import OptionError
from rankcollapse.transformer import NAMED, PARTS, Variant, parse_variants

PAPER = {
    "transformer": set(),
    "san": {"attention_skip", "mlp"},
    "san+mlp": {"attention_skip", "mlp_skip"},
    "san+skip": {"mlp"},
}
SINGLE = (
    *("attention_skip", "mlp", "mlp_skip", "attention_norm", "mlp_norm", "final_norm"),
    "mlp_projections",
)


def test_the_names_and_parts_that_exist():
    assert set(NAMED) == set(PAPER)
    assert set(PARTS) == set(SINGLE)
    assert all(text for text in PARTS.values())


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_names(name):
    variant = Variant.parse(name)
    assert variant.name == name
    assert variant.off == PAPER[name]


def test_every_pair_of_parts_in_both_orders():
    for first, second in itertools.permutations(SINGLE, 2):
        variant = Variant.parse(f"-{first}-{second}")
        assert variant.off == {first, second}
        assert variant.name == f"-{first}-{second}"
        for part in SINGLE:
            assert (part in variant) == (part not in (first, second))


@pytest.mark.parametrize("part", SINGLE)
@pytest.mark.parametrize("base", PAPER)
def test_a_part_off_a_named_variant(base, part):
    assert Variant.parse(f"{base}-{part}").off == PAPER[base] | {part}


def test_norm_stands_for_all_three():
    norms = {"attention_norm", "mlp_norm", "final_norm"}
    assert Variant.parse("-norm").off == norms
    assert Variant.parse("san-norm").off == norms | PAPER["san"]
    assert Variant.parse("-norm-mlp").off == norms | {"mlp"}


def test_blanks_around_a_name_do_not_count():
    assert Variant.parse("  san ") == Variant.parse("san")


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("sna", "sna"),
        ("SAN", "SAN"),
        ("san+norm", "san+norm"),
        ("-skip", "skip"),
        ("-mlp-attention", "attention"),
        ("san--mlp", ""),
        ("san-", ""),
        ("-", ""),
        ("", ""),
        ("   ", "   "),
        ("-san", "san"),
        ("mlp", "mlp"),
    ],
)
def test_unknown_names(name, wrong):
    with pytest.raises(OptionError) as error:
        Variant.parse(name)
    message = str(error.value)
    assert repr(name) in message and repr(wrong) in message
    for known in (*PAPER, *SINGLE, "norm"):
        assert re.search(rf"\b{re.escape(known)}\b", message), known


@pytest.mark.parametrize(
    "given",
    [
        ("san+skip", "transformer", "-mlp_skip"),
        ["san+skip", "transformer", "-mlp_skip"],
        "san+skip,transformer,-mlp_skip",
        " san+skip, transformer ,-mlp_skip",
    ],
)
def test_several_in_the_users_order(given):
    variants = parse_variants(given)
    assert [variant.name for variant in variants] == ["san+skip", "transformer", "-mlp_skip"]


@pytest.mark.parametrize("names", [(), []])
def test_none_at_all(names):
    with pytest.raises(OptionError, match="no variant was given"):
        parse_variants(names)


@pytest.mark.parametrize("names", ["", ",", "san,", ",san", ("san", "")])
def test_an_empty_one(names):
    with pytest.raises(OptionError, match="variant '' is not known"):
        parse_variants(names)


@pytest.mark.parametrize("names", ["san,san", "san,transformer, san", ("-mlp", "-mlp")])
def test_one_given_twice(names):
    with pytest.raises(OptionError, match=r"variant '(san|-mlp)' was given twice: give each once"):
        parse_variants(names)


class TestAsPublished:
    @pytest.mark.parametrize("family", ["bert", "xlnet", "gpt2"])
    def test_the_mlps_skip_stays(self, family):
        off = {name: Variant.parse(name).as_published(family).off for name in PAPER}
        assert off == {**PAPER, "san+mlp": {"attention_skip"}}

    def test_alberts_mlp_leaves_its_activation(self):
        off = {name: Variant.parse(name).as_published("albert").off for name in PAPER}
        assert off == {
            "transformer": set(),
            "san": {"attention_skip", "mlp_projections"},
            "san+mlp": {"attention_skip"},
            "san+skip": {"mlp_projections"},
        }

    @pytest.mark.parametrize("family", ["bert", "albert"])
    @pytest.mark.parametrize("name", ["-mlp_skip", "-attention_skip-mlp", "san+mlp-mlp_norm"])
    def test_spelled_variants_mean_what_they_say(self, family, name):
        variant = Variant.parse(name)
        assert variant.as_published(family) == variant

    def test_names_stay(self):
        for name in PAPER:
            assert Variant.parse(name).as_published("albert").name == name


@pytest.mark.parametrize(
    ("name", "post", "pre"),
    [
        ("transformer", "a = N₁(x + A(x)); y = N₂(a + M(a))", "a = x + A(N₁(x)); y = a + M(N₂(a))"),
        ("san", "y = N₁(A(x))", "y = A(N₁(x))"),
        ("san+mlp", "a = N₁(A(x)); y = N₂(M(a))", "a = A(N₁(x)); y = M(N₂(a))"),
        ("san+skip", "y = N₁(x + A(x))", "y = x + A(N₁(x))"),
        ("-mlp_skip", "a = N₁(x + A(x)); y = N₂(M(a))", "a = x + A(N₁(x)); y = M(N₂(a))"),
        ("-attention_norm", "a = x + A(x); y = N₂(a + M(a))", "a = x + A(x); y = a + M(N₂(a))"),
        ("-mlp_norm", "a = N₁(x + A(x)); y = a + M(a)", "a = x + A(N₁(x)); y = a + M(a)"),
        ("-norm", "a = x + A(x); y = a + M(a)", "a = x + A(x); y = a + M(a)"),
        (
            "-mlp_projections",
            "a = N₁(x + A(x)); y = N₂(a + act(a))",
            "a = x + A(N₁(x)); y = a + act(N₂(a))",
        ),
        ("san-norm", "y = A(x)", "y = A(x)"),
        ("-final_norm", "a = N₁(x + A(x)); y = N₂(a + M(a))", "a = x + A(N₁(x)); y = a + M(N₂(a))"),
    ],
)  # fmt: skip
def test_formulas(name, post, pre):
    assert Variant.parse(name).formula("post") == post
    assert Variant.parse(name).formula("pre") == pre


def test_formula_of_the_published_albert():
    formula = Variant.parse("san").as_published("albert").formula("post")
    assert formula == "a = N₁(A(x)); y = N₂(a + act(a))"
