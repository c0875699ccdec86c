import re

import pytest

from agentnb.draw.style import (
    COLORS,
    DARK,
    FAMILIES,
    get_family,
    get_shape,
    make_class,
    make_own_sheet,
    make_palette,
    make_stylesheet,
)

TEXTS = [
    *(("ink", fill) for fill in ("paper", "board", "board-head", "read", "written", "accent-fill", "failed-fill")),
    *(("ink", fill) for fill in ("waiting-fill", *FAMILIES)),
    *((f"{family}-text", fill) for family in FAMILIES for fill in (family, "paper", "accent-fill", "waiting-fill")),
    *(("edge-text", fill) for fill in ("paper", "area", "accent-fill", "written", *FAMILIES)),
    *((f"{family}-text", fill) for family in FAMILIES for fill in ("accent-fill", "written")),
    *((name, "paper") for name in ("failed", "waiting", "faint")),
    ("faint", "area"),
]


def contrast(one, other):
    def light(color):
        parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    high, low = sorted([light(one), light(other)], reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colors", [COLORS, DARK], ids=["light", "dark"])
def test_text_has_enough_contrast_on_its_background(colors):
    weak = {pair: round(contrast(*(colors[name] for name in pair)), 2) for pair in TEXTS}
    assert {pair: value for pair, value in weak.items() if value < 4.5} == {}


@pytest.mark.parametrize("colors", [COLORS, DARK], ids=["light", "dark"])
def test_lines_have_enough_contrast(colors):
    lines = ["edge", "accent", "failed", "waiting", "react-line", "event-line", "written-bar"]
    assert {name for name in lines if contrast(colors[name], colors["paper"]) < 2.2} == set()


def test_both_palettes_have_the_same_color_names():
    assert list(COLORS) == list(DARK)


def test_each_color_is_a_variable_with_a_fallback_and_precedes_it_for_old_viewers():
    sheet = make_stylesheet("svg.agentnb")
    assert "fill:#1e293b;fill:var(--agentnb-ink,#1e293b)" in sheet
    assert not re.search(r"[$~@]|\{\{|None", sheet)
    assert set(re.findall(r"--agentnb-([a-z-]+)", sheet)) <= set(COLORS)


def test_every_css_rule_is_scoped():
    rules = [line for line in make_stylesheet(".here svg").splitlines() if line]
    assert rules
    for rule in rules:
        assert all(part.startswith(".here svg") for part in rule.split("{")[0].split(","))


def test_a_palette_defines_every_variable():
    rule = make_palette(".jp", dark=True)
    assert rule.startswith(".jp{")
    assert rule.count("--agentnb-") == len(DARK)
    assert make_palette(".jp") != rule


def test_a_standalone_drawing_follows_the_theme_of_the_reader():
    assert "prefers-color-scheme:dark" in make_own_sheet()
    assert DARK["paper"] in make_own_sheet()


@pytest.mark.parametrize(
    ("kind", "shape", "family"),
    [
        ("router", "hexagon", "choose"),
        ("human", "parallelogram", "person"),
        ("agent", "box", "think"),
        ("?", "box", "plain"),
    ],
)
def test_a_kind_has_one_style_in_every_dialect(kind, shape, family):
    assert (get_shape(kind), get_family(kind)) == (shape, family)


@pytest.mark.parametrize(
    ("word", "name"), [("tool", "kind-tool"), ('"><x y', "kind----x-y"), ("", "kind-none"), ("é", "kind--")]
)
def test_class_names_are_plain_css_identifiers(word, name):
    assert make_class("kind", word) == name
