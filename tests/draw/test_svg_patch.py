import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.draw.dot import draw_recipe
from agentnb.draw.run_view import RunView
from agentnb.draw.svg_patch import PARTS, diff_patches
from tests.draw.drawn_recipes import (
    DIRECTIONS,
    HOSTILE,
    SVG,
    diamond,
    groups,
    hostile,
    hostile_run,
    support,
    support_run,
)

SPARE = 6


@pytest.fixture(autouse=True)
def _plain(monkeypatch):
    monkeypatch.setenv("AGENTNB_LAYOUT", "plain")


def apply(svg, patch):
    """What a live view does, in Python: classes and texts by the names in the picture, and nothing else."""
    root = ET.fromstring(svg)
    root.set("class", f"{root.get('class')} has-run")
    for group in groups(root, "node"):
        if entry := patch["nodes"].get(group.get("data-node")):
            group.set("class", " ".join([group.get("class"), *entry["classes"]]))
            group.find(f".//{SVG}tspan").text = entry["count"] or None
    for group in groups(root, "edge"):
        if entry := patch["edges"].get(group.get("data-edge")):
            group.set("class", " ".join([group.get("class"), *entry["classes"]]))
    for group in groups(root, "row"):
        fill_row(group, patch["rows"].get(group.get("data-index")))
    for more in root.iter(f"{SVG}text"):
        if more.get("class") == "more":
            more.text = patch["board"]["more"] or None
    fill_flows(root, patch["flows"])
    return root


def fill_row(group, entry):
    entry = entry or {"key": "", "label": "", "value": "", "tip": "", "classes": ["row", "spare"]}
    title, key, value = group.find(f"{SVG}title"), *group.findall(f"{SVG}text")
    group.set("class", " ".join(entry["classes"]))
    group.set("data-row", entry["key"])
    value.set("data-key", entry["key"])
    title.text, key.text, value.text = (entry[name] or None for name in ("tip", "label", "value"))


def fill_flows(root, flows):
    (holder,) = groups(root, "flows")
    known = {f"{group.get('data-direction')} {group.get('data-node')}": group for group in groups(root, "flow")}
    for name, entry in flows.items():
        group = known.get(name)
        if group is None:
            group = ET.SubElement(holder, f"{SVG}g", {"data-node": entry["node"], "data-direction": entry["direction"]})
            ET.SubElement(group, f"{SVG}title")
            ET.SubElement(group, f"{SVG}path", {"class": "line"})
            ET.SubElement(group, f"{SVG}path", {"class": "heads"})
        group.set("class", " ".join(entry["classes"]))
        title, line, heads = group
        title.text = entry["tip"]
        line.set("d", entry["line"])
        heads.set("d", entry["heads"])


def describe_picture(root):
    """All that a picture says, flows in any order and without the attributes that only old viewers read."""
    dull = {"stroke", "stroke-width", "fill"}

    def one(element):
        marks = tuple(sorted((name, value) for name, value in element.attrib.items() if name not in dull))
        text = (element.text or "").replace("\u202e", "")
        parts = [one(part) for part in element]
        if element.get("class", "").startswith("flows"):
            parts = sorted(parts)
            marks = ()
        return element.tag, marks, text.strip(), parts

    return one(root)


def patched_and_drawn(recipe, view, direction):
    bare = draw_recipe(recipe, direction=direction, spare=SPARE)
    patch = json.loads(json.dumps(bare.patch(view)))
    return apply(bare.bare_svg, patch), ET.fromstring(
        draw_recipe(recipe, direction=direction, run=view, spare=SPARE).bare_svg
    )


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("view", [support_run(), RunView(), RunView(current="send", visited={"send": 3})])
def test_a_patched_drawing_equals_a_new_drawing_of_the_run(direction, view):
    patched, drawn = patched_and_drawn(support(), view, direction)
    assert describe_picture(patched) == describe_picture(drawn)


def test_hostile_texts_are_patched_as_drawn():
    view = replace(hostile_run(), board=dict.fromkeys(HOSTILE, "</svg>"))
    patched, drawn = patched_and_drawn(hostile(), view, "TB")
    assert describe_picture(patched) == describe_picture(drawn)


NODES = list(diamond().nodes)
SOME = st.frozensets(st.sampled_from(NODES))
KEYS = st.frozensets(st.sampled_from(["ticket", "draft", "new", "ticket.text", "k1", "k2"]))
VIEWS = st.builds(
    RunView,
    current=st.none() | st.sampled_from(NODES),
    next=SOME,
    visited=st.dictionaries(st.sampled_from(NODES), st.integers(0, 9)),
    failed=SOME,
    waiting=SOME,
    breakpoints=SOME,
    board=st.dictionaries(st.sampled_from(["ticket", "draft", "new", *(f"k{at}" for at in range(12))]), st.integers()),
    written=KEYS,
    read=KEYS,
    seen_reads=st.dictionaries(st.sampled_from(NODES), KEYS),
    seen_writes=st.dictionaries(st.sampled_from(NODES), KEYS),
    taken=st.frozensets(st.integers(-1, 5)),
)


@given(VIEWS)
def test_any_run_is_patched_as_drawn(view):
    patched, drawn = patched_and_drawn(diamond(), view, "TB")
    assert describe_picture(patched) == describe_picture(drawn)


@given(VIEWS, VIEWS)
def test_the_changes_lead_from_one_patch_to_the_next(before, after):
    drawing = draw_recipe(diamond(), spare=SPARE)
    old, new = drawing.patch(before), drawing.patch(after)
    for part, entries in diff_patches(old, new).items():
        assert entries
        old[part] = {key: entry for key, entry in {**old[part], **entries}.items() if entry is not None}
    assert old == new


def test_a_patch_names_only_what_the_run_touched():
    patch = draw_recipe(support(), spare=SPARE).patch(RunView(current="send", visited={"send": 1}))
    assert tuple(patch) == PARTS
    assert patch["nodes"] == {"send": {"classes": ["visited", "current"], "count": "×1"}}
    assert patch["edges"] == {}
    assert set(patch["flows"]) == {"read send", "write send"}


def test_a_step_changes_little():
    drawing = draw_recipe(support(), spare=SPARE)
    old = drawing.patch(RunView(current="write", visited={"classify": 1}, board={"ticket": 1}))
    new = drawing.patch(RunView(current="critic", visited={"classify": 1, "write": 1}, board={"ticket": 1, "draft": 2}))
    delta = diff_patches(old, new)
    assert set(delta["nodes"]) == {"write", "critic"}
    assert [entry["key"] for entry in delta["rows"].values()] == ["draft"]
    assert delta["flows"]["read write"] is None
    assert diff_patches(new, new) == {}


def test_a_name_that_the_recipe_lacks_is_left_out():
    assert draw_recipe(diamond()).patch(RunView(current="gone", visited={"gone": 1}, taken={77}))["nodes"] == {}


def test_a_drawing_without_a_board_gets_no_rows():
    patch = draw_recipe(support(), board=False).patch(support_run())
    assert (patch["rows"], patch["flows"], patch["board"]) == ({}, {}, {})
    assert patch["nodes"]
