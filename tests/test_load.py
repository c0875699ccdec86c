from __future__ import annotations

import contextlib
import json
import os
from copy import deepcopy
from pathlib import Path

import networkx as nx
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import agentnb
from agentnb.errors import RecipeError
from agentnb.load import dialects, load

HELLO = "metadata: {name: hello}\ninterface: {}\ntopology: [{id: greet, type: agent, agent_ref: greeter}]\n"
FOLDER = Path(agentnb.__file__).parent / "samples"
TEXTS = [path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.yaml"))]
CONTENTS = [yaml.safe_load(text) for text in TEXTS]


def first(source, **options):
    with pytest.raises(RecipeError) as caught:
        load(source, **options)
    return caught.value.problems[0]


# ------------------------------------------------------------------------------------------------------------- sources


def test_text_files_dicts_and_graphs_can_be_loaded(tmp_path):
    file = tmp_path / "hello.yaml"
    file.write_text(HELLO)
    as_dict = yaml.safe_load(HELLO)
    for source in (HELLO, json.dumps(as_dict), as_dict, file, str(file)):
        recipe = load(source)
        assert (recipe.name, recipe.dialect) == ("hello", "coreason")
    assert load(nx.DiGraph([("a", "b")])).dialect == "networkx"


def test_a_recipe_has_its_file_and_its_text(tmp_path):
    file = tmp_path / "hello.yaml"
    file.write_text(HELLO)
    assert (load(file).file, load(file).text) == (str(file), HELLO)
    assert (load(HELLO).file, load(HELLO).text) == (None, HELLO)


def test_a_path_may_start_at_the_home_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "hello.yaml").write_text(HELLO)
    assert load("~/hello.yaml").name == "hello"


def test_a_loaded_recipe_is_returned():
    recipe = load(HELLO)
    assert load(recipe) is recipe
    assert load(recipe, name="other").name == "other"


def test_it_may_get_another_name():
    recipe = load(HELLO, name="other")
    assert (recipe.name, recipe.regions["root"].title) == ("other", "other")


@pytest.mark.parametrize(
    ("allow", "kept"),
    [
        ((), ()),
        ("tools", ("tools",)),
        (["a.b", Path("c")], ("a.b", str(Path("c").resolve()))),
        ("./c", (str(Path("c").resolve()),)),
    ],
)
def test_the_allow_list_is_passed_to_the_session(allow, kept):
    assert load(HELLO, allow=allow).meta["allow"] == kept


# ------------------------------------------------------------------------------------------------- what is not a recipe


def test_a_missing_file_has_a_suggestion(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("hello.yaml").write_text(HELLO)
    Path("sub").mkdir()
    Path("sub/triage.json").write_text("{}")
    problem = first("helo.yaml")
    assert (problem.code, problem.where, problem.do) == ("R101", "helo.yaml", "did you mean 'hello.yaml'?")
    assert first(f"sub{os.sep}tirage.json").do == f"did you mean {str(Path('sub', 'triage.json'))!r}?"
    assert first(Path("gone/x.yaml")).code == "R101"


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, "~nobody-by-this-name/x.yaml", "words"])
def test_an_impossible_path_is_a_problem(path):
    assert first(path).code == "R101"


def test_a_folder_is_not_a_recipe(tmp_path):
    assert first(tmp_path).code == "R101"


@pytest.mark.parametrize("text", ["", "  ", "- a\n- b", "[1]", "a text\nof two lines", "# only a comment\n"])
def test_text_that_is_not_a_mapping_is_reported(text):
    problem = first(text)
    assert (problem.code, problem.where) == ("R111", "<text>" if not text.strip() or text[0] == "#" else "<text>:1:1")


def test_the_attempted_dialects_are_reported_for_an_unknown_source():
    problem = first({"steps": [], "nmae": "x"})
    assert (problem.code, problem.where) == ("R107", "<dict>")
    assert "'steps', 'nmae'" in problem.why
    assert all(row.name in problem.why for row in dialects())


def test_a_misspelled_first_key_has_a_suggestion():
    assert first({"topolgy": []}).do == "did you mean 'topology'?"


@pytest.mark.parametrize("source", [None, 3, 2.5, object(), [1], {1, 2}, b"topology: []", len])
def test_other_objects_are_not_recipes(source):
    problem = first(source)
    assert problem.code == "R107"
    assert "a networkx graph" in problem.do


def test_a_dialect_may_be_given():
    assert load(HELLO, dialect="coreason").name == "hello"
    assert load(nx.DiGraph([(1, 2)]), dialect="networkx").name == "graph"
    assert first({"a": 1}, dialect="coreason").code == "R113"


@pytest.mark.parametrize(
    ("source", "dialect"),
    [(HELLO, "networkx"), (nx.DiGraph(), "coreason"), (3, "coreason"), ("[1]", "coreason"), (None, "networkx")],
)
def test_a_dialect_that_does_not_match_is_reported(source, dialect):
    assert first(source, dialect=dialect).code == "R107"


def test_a_misspelled_dialect_has_a_suggestion():
    assert first(HELLO, dialect="coreson").do == "did you mean 'coreason'?"


def test_a_text_that_cannot_be_read_is_reported_whatever_the_dialect():
    assert first("a: [1\n", dialect="coreason").code == "R102"
    assert first("a: [1\n").code == "R102"


def test_problems_of_the_text_are_reported_with_the_dialect():
    with pytest.raises(RecipeError) as caught:
        load("a: 1\na: 2\n")
    assert [problem.code for problem in caught.value.problems] == ["R107", "R103"]


# ---------------------------------------------------------------------------------------------------------- all at once


def test_an_error_shows_its_problems_as_a_table():
    pytest.importorskip("agentnb.trace.frames")
    with pytest.raises(RecipeError) as caught:
        load({"topology": []})
    assert list(caught.value.to_frame()["code"]) == [problem.code for problem in caught.value.problems]


def test_nothing_of_a_recipe_runs_or_is_imported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("evil.py").write_text("raise SystemExit('it was imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    text = HELLO.replace("greeter", "evil:run").replace(
        "agent_ref", "system_prompt_override: '{{ ().__class__ }}', inputs_map: {a: \"{{ 1/0 }}\"}, agent_ref"
    )
    assert load(text).nodes["greet"].params["ref"] == "evil:run"
    assert first("a: !!python/object/apply:os.system ['echo']\n").code == "R107"


def test_dialects_are_listed():
    assert {row.name for row in dialects()} >= {"coreason", "agentruntime", "symphony", "networkx"}
    assert "blackboard" in repr(dialects())


# --------------------------------------------------------------------------------------- whatever comes, a RecipeError

JUNK = st.sampled_from(
    ["", "yes", "no", "~", "1", "- ", ": ", "{", "}", "[", "]", "&a ", "*a", "!!int ", "'", '"', "\t", "\n", "<<: "]
)


@st.composite
def mutated(draw):
    """A sample's text with some pieces cut, doubled, swapped or put in."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        end = draw(st.integers(at, min(len(text), at + 40)))
        to = draw(st.integers(0, len(text)))
        piece = draw(st.one_of(JUNK, st.text(max_size=4), st.just(text[at:end])))
        text = draw(st.sampled_from([text[:at] + piece + text[end:], text[:to] + piece + text[to:]]))
    return text


def is_told(source):
    try:
        problems, worst = load(source).check(), {"warning"}
    except RecipeError as error:
        problems, worst = error.problems, {"warning", "error"}
    assert {problem.severity for problem in problems} <= worst
    assert "error" not in worst or "error" in {problem.severity for problem in problems}


@given(mutated())
def test_no_text_raises_anything_else(text):
    is_told(text)


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.binary(max_size=3)


@st.composite
def rewritten(draw):
    """A sample's content with some values replaced, dropped or moved elsewhere."""
    content = deepcopy(draw(st.sampled_from(CONTENTS)))
    for _ in range(draw(st.integers(1, 3))):
        part, path = content, []
        while isinstance(part, dict | list) and part:
            keys = list(part) if isinstance(part, dict) else range(len(part))
            path.append((part, draw(st.sampled_from(list(keys)))))
            part = part[path[-1][1]]
            if draw(st.integers(0, 3)) == 0:
                break
        inner, key = path[-1]
        match draw(st.integers(0, 3)):
            case 0:
                del inner[key]
            case 1:
                inner[key] = draw(st.sampled_from(path))[0].copy()
            case 2:
                inner[key] = draw(
                    st.recursive(VALUES, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=4), v))
                )
            case _ if isinstance(inner, dict):
                inner[draw(st.text(max_size=4) | st.sampled_from(["type", "id", "steps", "status", "recovery"]))] = part
        if not content:
            break
    return content


@given(rewritten())
def test_no_content_raises_anything_else(content):
    is_told(content)
    try:
        text = json.dumps(content)
    except (TypeError, ValueError):
        return
    is_told(text)


@given(st.dictionaries(st.text(max_size=8) | st.booleans() | st.none() | st.integers(), VALUES, max_size=4))
def test_no_dict_raises_anything_else(content):
    is_told({"topology": content, "metadata": content, "interface": content})


ATTRIBUTES = st.dictionaries(
    st.sampled_from(
        [
            "kind",
            "function",
            "inputs",
            "routes",
            "graph",
            "until",
            "times",
            "when",
            "value",
            "entry",
            "name",
            "input_key",
        ]
    ),
    VALUES
    | st.sampled_from(["router", "loop", "subgraph", "a", "n > 1"])
    | st.just({"x": "a"})
    | st.just(nx.DiGraph([(1, 2)])),
    max_size=3,
)


@given(st.lists(ATTRIBUTES, max_size=4), st.lists(ATTRIBUTES, max_size=4), ATTRIBUTES)
def test_no_graph_raises_anything_else(nodes, edges, top):
    graph = nx.MultiDiGraph()
    graph.graph.update(top)
    for number, attributes in enumerate(nodes):
        graph.add_node(number, **attributes)
    for number, attributes in enumerate(edges):
        graph.add_edges_from([(number % 3, "a", attributes)])
    is_told(graph)


def test_any_data_raises_only_recipe_errors(monkeypatch):
    from networkx import DiGraph

    monkeypatch.setattr("sys.unraisablehook", lambda _: None)  # pydantic tells there what it cannot show

    class Hostile:
        def __repr__(self):
            raise SystemExit("hostile")

        __str__ = __eq__ = __hash__ = __getattr__ = __bool__ = __repr__

    text = """apiVersion: coreason.ai/v2
kind: Recipe
metadata: {name: n}
interface: {inputs: {type: object, properties: {a: {type: string}}, required: [[a]]}}
topology: {nodes: [{id: a, type: agent, agent_ref: x}], edges: [], entry_point: a}
"""
    with contextlib.suppress(agentnb.RecipeError):
        agentnb.load(text)
    huge = 10**5000
    for value in (huge, -huge, [huge], {"a": huge}, {huge: 1}, Hostile(), [Hostile()], {"a": Hostile()}):
        graph = DiGraph(name="odd")
        graph.add_node("a", kind=value, function=value)
        graph.add_edge("a", "b", when=value)
        recipe = {
            "metadata": {"name": value},
            "interface": {},
            "topology": [{"id": value, "type": value, "agent_ref": value}],
        }
        nodes = {"recipe": {"name": value}, "graph": {"nodes": [{"id": "a", "type": value}], "edges": value}}
        for source in (
            graph,
            recipe,
            nodes,
            {"name": value, "description": value, "task": value, "tools": [value]},
            value,
        ):
            with pytest.raises(agentnb.RecipeError) as caught:
                agentnb.load(source)
            assert str(caught.value)
