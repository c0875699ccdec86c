import os
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from agentnb.draw import render
from agentnb.draw.render import choose_backend, lay_out, render_png
from agentnb.errors import AgentNbError
from tests.draw.drawn_recipes import DIRECTIONS, diamond, hostile, long, picture, support, support_run


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.delenv("AGENTNB_LAYOUT", raising=False)
    monkeypatch.setattr(render, "_layouts", render.OrderedDict())


def only(monkeypatch, *names):
    monkeypatch.setattr(render, "_is_there", lambda name: name in (*names, "plain"))


def code_of(call):
    with pytest.raises(AgentNbError) as caught:
        call()
    (problem,) = caught.value.problems
    return problem.code


@pytest.mark.parametrize(
    ("there", "chosen"), [(("dot", "pygraphviz"), "dot"), (("pygraphviz",), "pygraphviz"), ((), "plain")]
)
def test_the_best_available_backend_is_used(monkeypatch, there, chosen):
    only(monkeypatch, *there)
    assert choose_backend() == chosen


def test_the_environment_can_choose_the_backend(monkeypatch):
    monkeypatch.setenv("AGENTNB_LAYOUT", "plain")
    assert choose_backend() == "plain"
    assert lay_out(picture(diamond())).layout == "plain"


def test_an_invalid_choice_is_reported(monkeypatch):
    monkeypatch.setenv("AGENTNB_LAYOUT", "dto")
    assert code_of(choose_backend) == "U202"
    monkeypatch.setenv("AGENTNB_LAYOUT", "dot")
    only(monkeypatch)
    assert code_of(choose_backend) == "U203"


def complete(name, shown):
    geometry = lay_out(shown)
    assert geometry.layout == name
    assert {box.name for box in shown.boxes} == set(geometry.boxes)
    assert {link.name for link in shown.links} <= set(geometry.routes)
    assert {area.name for area in shown.areas} == set(geometry.areas)
    sizes = {box.name: (box.width / 2, box.height / 2) for box in shown.boxes}
    placed = [(geometry.boxes[name], sizes[name]) for name in sizes]
    for at, ((x, y), (w, h)) in enumerate(placed):
        assert all(abs(x - x2) >= w + w2 - 1 or abs(y - y2) >= h + h2 - 1 for (x2, y2), (w2, h2) in placed[:at])


@pytest.mark.needs_dot
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("drawn", [diamond, support, hostile])
def test_dot_computes_the_layout(monkeypatch, drawn, direction):
    monkeypatch.setenv("AGENTNB_LAYOUT", "dot")
    complete("dot", picture(drawn(), direction=direction))


@pytest.mark.parametrize("drawn", [diamond, support, hostile])
def test_pygraphviz_computes_the_layout_without_dot(monkeypatch, drawn):
    pytest.importorskip("pygraphviz")
    monkeypatch.setenv("AGENTNB_LAYOUT", "pygraphviz")
    monkeypatch.setenv("PATH", "")
    complete("pygraphviz", picture(drawn()))


def test_a_run_reuses_the_layout(monkeypatch):
    monkeypatch.setenv("AGENTNB_LAYOUT", "plain")
    before = lay_out(picture(support()))
    assert lay_out(picture(support(), support_run())) is before
    assert lay_out(picture(support(), direction="LR")) is not before


def test_old_layouts_are_forgotten(monkeypatch):
    monkeypatch.setenv("AGENTNB_LAYOUT", "plain")
    monkeypatch.setattr(render, "_KEPT", 2)
    for number in range(4):
        lay_out(picture(replace(diamond(), entry=()), direction=DIRECTIONS[number]))
    assert len(render._layouts) == 2


@pytest.mark.parametrize(
    "fault",
    [subprocess.TimeoutExpired("dot", 1), subprocess.CalledProcessError(1, "dot"), OSError(), ValueError("no layout")],
    ids=lambda fault: type(fault).__name__,
)
def test_the_plain_layout_replaces_a_failing_backend(monkeypatch, fault):
    def fail(*_):
        raise fault

    only(monkeypatch, "dot", "pygraphviz")
    monkeypatch.setattr(render, "_run_graphviz", fail)
    assert lay_out(picture(diamond())).layout == "plain"


def test_a_slow_layout_is_retried_with_straight_lines(monkeypatch):
    requests = []

    def slow(name, text, format, seconds):
        requests.append((name, "splines=line" in text, seconds))
        raise subprocess.TimeoutExpired(name, seconds)

    only(monkeypatch, "dot", "pygraphviz")
    monkeypatch.setattr(render, "_run_graphviz", slow)
    lay_out(picture(diamond()), seconds=10)
    assert [(name, cheap) for name, cheap, _ in requests] == [("dot", False), ("dot", True)]
    assert sum(seconds for *_, seconds in requests) == pytest.approx(10)
    requests.clear()
    lay_out(picture(long(400)), seconds=10)
    first, second = (seconds for *_, seconds in requests)
    assert first < second


def program(tmp_path, monkeypatch, text):
    """Put a program called `dot` in the place of the real one; it may ask for `real`, and writes its number down."""
    pids, real = tmp_path / "pids", shutil.which("dot")
    head = f"#!{sys.executable}\nimport os, sys, time\nopen({str(pids)!r}, 'a').write(f'{{os.getpid()}} ')\n"
    path = tmp_path / "dot"
    path.write_text(f"{head}real = {real!r}\nasked = sys.stdin.read()\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("AGENTNB_LAYOUT", "dot")
    return pids


@pytest.mark.needs_dot
def test_a_graph_that_is_too_hard_for_curves_gets_straight_lines(tmp_path, monkeypatch):
    program(tmp_path, monkeypatch, (
        "if 'splines=line' not in asked: time.sleep(600)\n"
        "import subprocess\n"
        "done = subprocess.run([real, *sys.argv[1:]], input=asked.encode(), capture_output=True)\n"
        "sys.stdout.buffer.write(done.stdout)"
    ))  # fmt: skip
    shown = picture(long(400), board=False)
    geometry = lay_out(shown, seconds=10)
    assert geometry.layout == "dot"
    assert {link.name for link in shown.links} <= set(geometry.routes)


def test_the_plain_layout_replaces_a_program_that_hangs(tmp_path, monkeypatch):
    pids = program(tmp_path, monkeypatch, "time.sleep(600)")
    assert lay_out(picture(support()), seconds=2).layout == "plain"
    for pid in pids.read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


def test_the_plain_layout_replaces_a_program_with_invalid_output(tmp_path, monkeypatch):
    program(tmp_path, monkeypatch, "print('[1, 2]')")
    assert lay_out(picture(support())).layout == "plain"


@pytest.mark.needs_dot
def test_a_png_has_the_png_signature():
    assert render_png("digraph { a -> b }").startswith(b"\x89PNG")


def test_a_png_needs_graphviz(monkeypatch):
    only(monkeypatch)
    assert code_of(lambda: render_png("digraph {}")) == "U204"


@pytest.mark.needs_dot
def test_dot_source_that_graphviz_rejects_is_reported(monkeypatch):
    only(monkeypatch, "dot")
    assert code_of(lambda: render_png("no dot at all")) == "U204"
