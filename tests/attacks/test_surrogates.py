"""Half of a surrogate pair, which JSON and file names may contain, in everything that shows a run."""

from __future__ import annotations

import networkx as nx
import pytest

import agentnb as nb

HALF = "a\ud800b"


@pytest.fixture(scope="module")
def ran():
    graph = nx.DiGraph(name=HALF)
    graph.add_node(HALF, function=lambda: {HALF: {HALF: [HALF]}}, inputs={})
    graph.add_node("fail", function=lambda: 1 / 0, inputs={})
    graph.add_edge(HALF, "fail", when=f"'{HALF}' == '{HALF}'", kind="sequential")
    session = nb.Session(nb.load(graph), {HALF: HALF}, name=HALF)
    session.run()
    session.breakpoints.add(when=f"'{HALF}' == 'x'")
    session.watch(f"'{HALF}'")
    return session, session.fork(at=1, name=HALF, note=HALF)


def load_missing():
    with pytest.raises(nb.RecipeError) as caught:
        nb.load(f"/none/{HALF}.yaml")
    return caught.value.to_frame()


VIEWS = {
    "repr": lambda one, two, _: "".join(map(repr, (one, one.tree(), one.breakpoints, one.watches, one.error))),
    "breakpoints": lambda one, two, file: (one.breakpoints.to_frame().to_csv(), one.breakpoints.save(file)),
    "breakpoints again": lambda one, two, file: one.breakpoints.load(one.breakpoints.save(file)),
    **{
        f"frame {name}": lambda one, two, _, name=name: repr(getattr(one.trace.frames, name))
        for name in ("steps", "writes", "reads", "edges", "calls", "interventions", "events")
    },
    "wide": lambda one, two, _: one.trace.wide([HALF]).to_csv(),
    "compare": lambda one, two, _: nb.compare(one, two).to_frame().to_csv(),
    "slice": lambda one, two, _: one.slice(HALF).to_frame().to_csv(),
    "coverage": lambda one, two, _: nb.coverage([one, two]).to_frame().to_csv(),
    "suspects": lambda one, two, _: nb.suspects([one, two], lambda run: run is two).to_csv(),
    "replay": lambda one, two, _: one.replay().to_frame().to_csv(),
    "JSON": lambda one, two, file: one.trace.to_json(file),
    "HTML": lambda one, two, file: one.trace.to_html(file),
    "Parquet": lambda one, two, file: one.trace.to_parquet(file),
    "event log": lambda one, two, _: one.trace.to_event_log().to_csv(),
    "drawing": lambda one, two, file: one.draw().save(file.with_suffix(".svg")),
    "problems": lambda one, two, _: load_missing().to_csv(),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_half_of_a_surrogate_pair_is_shown_everywhere(view, ran, tmp_path):
    view(*ran, tmp_path / "out")
    for file in tmp_path.iterdir():
        assert file.stat().st_size > 0
