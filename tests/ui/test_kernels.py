"""A cockpit in a real kernel: its buttons act while a run goes on, whatever the kernel's version and its threads.

With KERNELS=all, in each version of ipykernel whose loop is a different one; else in the one that is installed.
"""

from __future__ import annotations

import os

import pytest

from tests.ui.kernels import VERSIONS, installed, kernel

pytestmark = pytest.mark.starts_programs

WANTED = VERSIONS if os.environ.get("KERNELS") == "all" else ("installed",)
SETUP = """
import asyncio, time
import networkx as nx
import agentnb as nb

async def tick(n):
    await asyncio.sleep(0.002)
    return {"n": n + 1}

def slow(n):
    time.sleep(0.02)
    return {"n": n + 1}

def session_of(does, times=100_000):
    body = nx.DiGraph(name="body")
    body.add_node("tick", function=does, inputs={"n": "n"})
    graph = nx.DiGraph(name="clock")
    graph.add_node("again", kind="loop", graph=body, times=times)
    graph.add_node("done", function=lambda n: {"last": n}, inputs={"n": "n"})
    graph.add_edge("again", "done")
    return nb.Session(nb.load(graph), {"n": 0}, budget={"max_steps": 10**9})
"""


@pytest.fixture(scope="module", params=WANTED)
def alive(request, tmp_path_factory):
    """A kernel of one version, with recipes that go on for ever."""
    home = tmp_path_factory.mktemp("kernel")
    with kernel(home, None if request.param == "installed" else installed(request.param, home)) as running_kernel:
        running_kernel.run(SETUP)
        if request.param != "installed":
            assert running_kernel.run("import ipykernel; print(ipykernel.__version__)") == request.param
        yield running_kernel


@pytest.fixture(params=["main", "subshell"])
def live(request, alive):
    """The same, spoken to over the main shell as most front ends do, or over a subshell as JupyterLab does."""
    alive.subshell = None
    wants = request.param == "subshell"
    if wants and not alive.open_subshell():
        assert alive.run("print(ipykernel.version_info[0] < 7)") == "True"  # the older ones have none: the main shell
    return alive


class Cockpit:
    """A cockpit in a kernel, and what its pages would show."""

    def __init__(self, kernel, session):
        self.kernel = kernel
        kernel.run(f"session = {session}; cockpit = nb.debug(session)")
        self.comm = kernel.run("print(cockpit.comm.comm_id)")

    def press(self, verb, value=None, target=None):
        self.kernel.ask(self.comm, verb, value, target)

    def shows(self, **wanted):
        self.kernel.until(lambda: all(self.state.get(name) == value for name, value in wanted.items()))

    def passes(self, step):
        self.kernel.until(lambda: self.state.get("position", 0) > step)

    @property
    def state(self):
        return self.kernel.states.get(self.comm, {})


@pytest.mark.parametrize("node", ["tick", "slow"])
@pytest.mark.parametrize("verb", ["run", "over"])
def test_pause_ends_a_background_run_and_cells_execute_meanwhile(live, verb, node):
    cockpit = Cockpit(live, f"session_of({node})")
    cockpit.press(verb)
    cockpit.passes(3)
    assert live.run("print(session.status, 6 * 7)") == "running 42"
    cockpit.press("pause")
    cockpit.shows(status="paused")
    position = cockpit.state["position"]
    assert live.run("await asyncio.sleep(0.05); print(session.position)") == str(position)

    cockpit.press("step")
    cockpit.shows(position=position + 1, status="paused")
    cockpit.press("back")
    cockpit.shows(position=position)
    cockpit.press(verb)
    cockpit.passes(position + 2)
    cockpit.press("stop")
    cockpit.shows(status="paused")


def test_a_run_started_in_a_cell_is_paused_and_resumed(live):
    cockpit = Cockpit(live, "session_of(tick)")
    live.run("session.start()")
    cockpit.passes(3)
    cockpit.press("speed", 0.001)
    cockpit.press("pause")
    cockpit.shows(status="paused", speed=0.001)
    cockpit.press("speed", None)
    cockpit.press("run")
    cockpit.shows(status="running")
    cockpit.press("goto", 1)
    cockpit.shows(status="paused", position=1)


def test_into_and_run_to_do_not_block_the_notebook(live):
    cockpit = Cockpit(live, "session_of(tick, times=3)")
    cockpit.press("into")
    cockpit.shows(position=1)
    cockpit.press("into")
    cockpit.shows(position=2)
    cockpit.press("run_to", None, "done")
    cockpit.shows(current="done", status="paused")
    cockpit.press("run_back")
    cockpit.shows(position=0, status="ready")


def test_errors_are_shown_and_end_nothing(live):
    cockpit = Cockpit(live, "session_of(tick)")
    cockpit.press("goto", 99)
    live.until(lambda: [one["code"] for one in cockpit.state.get("problems", [])] == ["X111"])
    cockpit.press("step")
    cockpit.shows(position=1, problems=[])
