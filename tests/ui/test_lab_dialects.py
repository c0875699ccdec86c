"""The cockpit in a real JupyterLab, one recipe a dialect: each button and each pane.

A session in the test's own process, the mirror, does what a person does on the screen. After each act the screen says
what the mirror says, and the kernel's session stands where the mirror stands. By default one recipe with a person and
one of events are tried; LAB=all tries one of every dialect.
"""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass, field

import nbformat
import pytest

import agentnb as nb
from agentnb.ui.commands import run_command
from agentnb.ui.status_line import format_status_line
from agentnb.ui.view_model import list_abilities
from tests.ui.lab import REPLY, Notebook, running
from tests.ui.pages import opened

pytestmark = pytest.mark.needs_chromium


@dataclass
class Case:
    """A recipe of a dialect, and what a person does with it: `stop` is where the run is to stop on its way."""

    sample: str
    stop: str
    inputs: dict = field(default_factory=dict)
    event: tuple = ()
    answer: str = ""
    edit: tuple = ("note", "by hand")


CASES = {
    "coreason": Case("triage", "write", answer="approve"),
    "agentruntime": Case("research", "write"),
    "symphony": Case("moderation", "parse", {"task": "Comment 7: You fool."}),
    "networkx": Case("refine", "report"),
    "polaris": Case("search", "note"),
    "activegraph": Case(
        "team", "review", event=("goal.created", '{"goal": "Tell of swifts."}'), edit=("task#1.data.state", "open")
    ),
    "langgraph": Case("forecast", "act"),
    "burr": Case("poster", "shorten"),
}
VERBS = ("Back", "Step", "Into", "Over", "Out", "Run", "Run back", "Pause", "Stop", "Reset")
# What the kernel says of an expression, asked beside the notebook's cells.
ASK = """async text => {
  const kernel = window.jupyterapp.shell.currentWidget.context.sessionContext.session.kernel;
  const asked = kernel.requestExecute({code: '', silent: true, store_history: false, user_expressions: {found: text}});
  const {found} = (await asked.done).content.user_expressions;
  return found.status === 'ok' ? found.data['text/plain'] : `${found.ename}: ${found.evalue}`;
}"""
SHOWN = """([root, wanted]) => {
  const slider = root.querySelector('input[type=range]');
  const shown = {
    status: root.querySelector('.agentnb-status').textContent,
    said: root.querySelector('.agentnb-sentence').textContent,
    step: Number(slider.value), length: Number(slider.max),
    current: [...root.querySelectorAll('g.node.current')].map(group => group.dataset.node).join(),
    problems: root.querySelectorAll('.agentnb-problems > *').length,
    able: [...root.querySelectorAll('.agentnb-buttons button')].filter(one => one.ariaDisabled !== 'true')
      .map(one => one.dataset.do).sort().join(),
  };
  root.dataset.differs = JSON.stringify(Object.keys(wanted).filter(key => wanted[key] !== shown[key])
    .map(key => [key, wanted[key], shown[key]]));
  return root.dataset.differs === '[]';
}"""
BAR = [name.lower().replace(" ", "_") for name in VERBS]
STANDS = "({0}.position, str({0}.status), {0}.current, len({0}.trace), sorted(map(str, {0}.board)))"


class Person:
    """Who sits before the cockpit of one cell, and the mirror that does the same."""

    def __init__(self, page, name, case):
        self.page, self.name, self.case = page.page, name, case
        self.mirror = nb.Session(nb.samples(case.sample), case.inputs or None)
        self.view = page.cockpit(page.run(f"{name} = nb.Session"))
        self.root = self.view.root
        self.pressed = set()

    def kernel(self, expression):
        """Return what an expression is worth in the kernel; {0} is the session that the cockpit shows."""
        value = self.page.evaluate(ASK, expression.replace("{0}", f"{self.name}_view.session"))
        return ast.literal_eval(value)

    def agrees(self):
        """Wait until the screen shows what the mirror says, and see that the kernel stands there too."""
        from playwright.sync_api import TimeoutError as Late  # late: not everybody who runs the tests has it

        mirror, able = self.mirror, list_abilities(self.mirror)
        expected = {
            "status": str(mirror.status).replace("_", " "), "said": format_status_line(mirror), "step": mirror.position,
            "length": len(mirror.trace), "able": ",".join(sorted(verb for verb in BAR if able[verb])), "problems": 0,
        }  # fmt: skip
        if mirror.recipe.reactive is None:  # of those, an event may be next, which is not a node
            expected["current"] = mirror.current or ""
        root = self.root.element_handle()
        try:
            self.page.wait_for_function(SHOWN, arg=[root, expected], timeout=REPLY)
        except Late:
            pytest.fail(f"{self.name}: wanted and shown are {root.get_attribute('data-differs')}")
        state = (mirror.position, str(mirror.status), mirror.current, len(mirror.trace))
        assert self.kernel(STANDS) == (*state, sorted(map(str, mirror.board)))

    def does(self, verb, value=None, target=None):
        """Have the mirror do what was done on the screen, and compare."""
        run_command(self.mirror, verb, value, target)
        self.agrees()

    def press(self, name):
        """Press a button of the bar, where it can be pressed; the screen has said so before."""
        verb = name.lower().replace(" ", "_")
        if list_abilities(self.mirror)[verb]:
            self.view.press(name)
            self.pressed.add(name)
            self.does(verb)

    def begin(self):
        """Give a run on events its first one."""
        if self.case.event:
            type_, payload = self.case.event
            pane = self.root.locator(".agentnb-events")
            pane.get_by_label("type of the event").fill(type_)
            pane.get_by_label("payload, as JSON").fill(payload)
            pane.get_by_role("button", name="Emit").click()
            self.does("emit", payload, type_)

    def margin(self, node):
        """Click into the margin of a node, which sets a breakpoint or takes it away."""
        self.root.locator(f'g.node[data-node="{node}"] .agentnb-reach').click()
        run_command(self.mirror, "stop_at", None, node)
        marked = len(self.mirror.breakpoints)
        self.page.wait_for_function(
            "([root, count]) => root.querySelectorAll('g.node.breakpoint').length === count",
            arg=[self.root.element_handle(), marked], timeout=REPLY,
        )  # fmt: skip
        assert self.kernel("[row.node for row in {0}.breakpoints]") == [row.node for row in self.mirror.breakpoints]

    def run_to_the_end(self):
        """Run, and answer whoever asks; what Run has begun goes on after the answer."""
        self.press("Run")
        while self.mirror.status == "waiting":
            self.root.locator(".agentnb-ask").get_by_role("textbox").first.fill(self.case.answer)
            self.view.press("Answer")
            run_command(self.mirror, "answer", self.case.answer, self.mirror.current)
            self.mirror.run()
            self.agrees()

    def speed(self, text):
        self.root.get_by_label("speed of Run").select_option(label=text)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    folder, home = tmp_path_factory.mktemp("notebooks"), tmp_path_factory.mktemp("jupyter")
    cells = [
        f"import agentnb as nb\n{name} = nb.Session(nb.samples({case.sample!r}), {case.inputs or None!r})\n"
        f"{name}_view = nb.Debugger({name})\n{name}_view"
        for name, case in CASES.items()
    ]
    python = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells], metadata=python)
    nbformat.write(notebook, folder / "dialects.ipynb")
    with running(folder, home) as address:
        yield address


@pytest.fixture(scope="module")
def notebook(chromium, lab):
    with opened(chromium, viewport={"width": 1400, "height": 1000}) as (context, outside):
        page, errors = context.new_page(), []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        yield Notebook(page, lab("dialects.ipynb"))
        assert errors == []
        assert outside == [], "a request left this machine"


WANTED = CASES if os.environ.get("LAB") == "all" else ("coreason", "activegraph")


@pytest.fixture(params=WANTED)
def person(request, notebook):
    person = Person(notebook, request.param, CASES[request.param])
    person.agrees()
    return person


def test_every_button_and_every_pane_works(person):
    assert person.root.locator(".agentnb-buttons button").all_inner_texts() == list(VERBS)
    steps_by_hand(person)
    panes_open_and_close(person)
    runs_and_stops(person)
    looks(person)
    pauses_and_stops(person)
    edits_and_forks(person)
    assert person.pressed >= set(VERBS) - {"Out"}
    assert ("Out" in person.pressed) == bool(len(person.mirror.recipe.regions) > 1)


def steps_by_hand(person):
    """Step, Back, Into, Stop, Over and Out."""
    person.begin()
    for name in ("Step", "Back", "Step", "Into", "Into"):
        person.press(name)
    if person.mirror.status == "in_flight":
        person.press("Stop")
    person.press("Over")
    while list_abilities(person.mirror)["step"] and len(person.mirror.stack) == 1 and person.mirror.position < 6:
        person.press("Step")
    person.press("Out")


def panes_open_and_close(person):
    heads = person.root.locator(".agentnb-pane:visible > .agentnb-pane-head > .agentnb-pane-title")
    titles = [head.split(" (")[0] for head in heads.all_inner_texts()]
    assert [title for title in titles if not title.startswith("Details")] == [
        *("Graph", "Timeline", *(["Objects"] if person.case.event else []), "Call stack and next nodes"),
        *(["Events"] if person.case.event else []),
        *("Blackboard", "Breakpoints", "Forks", "Usage by node"),
    ]
    for head in heads.all():
        body = head.locator("xpath=../..").locator(".agentnb-room")
        for _ in range(2):
            before = head.get_attribute("aria-expanded")
            head.click()
            assert head.get_attribute("aria-expanded") != before
            assert body.is_visible() == (before == "false")
    person.agrees()


def runs_and_stops(person):
    """Reset, Run to a breakpoint, Run back, and the slider."""
    person.press("Reset")
    person.begin()
    person.margin(person.case.stop)
    person.press("Run")
    assert person.mirror.current == person.case.stop
    person.margin(person.case.stop)
    person.press("Run back")
    person.view.slide(1)
    person.does("goto", 1)


def pauses_and_stops(person):
    """Pause and Stop of a slow run; where it stands by then is the kernel's to say. Then begin again."""
    person.speed("1 a second")
    for name in ("Pause", "Stop"):
        person.view.press("Run")
        person.view.shows(status="running")
        person.view.press(name)
        person.pressed.add(name)
        person.view.shows(status="paused")
        at = person.kernel("{0}.position")
        person.view.shows(step=at)
        person.view.slide(0)
        person.view.shows(step=0)
    person.speed("full speed")
    person.page.wait_for_function(
        "root => root.querySelector('.agentnb-speed').value === ''", arg=person.root.element_handle(), timeout=REPLY
    )
    person.press("Reset")
    person.begin()


def looks(person):
    """A node, and a step of the timeline."""
    person.root.locator(f'g.node[data-node="{person.case.stop}"] .shape').first.click()
    person.root.get_by_role("button", name=f"Details of node {person.case.stop}").wait_for()
    kind = person.mirror.recipe.nodes[person.case.stop].kind
    person.root.locator(".agentnb-details-head", has_text=kind).wait_for()
    person.root.locator('.agentnb-step[data-step="2"]').click()
    person.does("goto", 2)
    person.root.locator(".agentnb-details-head", has_text="Step 2").wait_for()


def edits_and_forks(person):
    """Run to the end, answer, edit, fork, step in the fork, and show the first run again."""
    person.run_to_the_end()
    if not person.case.event:
        person.press("Run back")  # so that the edit is made in the past; of a graph's objects none is there by then
    path, text = person.case.edit
    person.root.get_by_role("button", name="add a key").click()
    person.root.get_by_label("new key", exact=True).fill(path)
    person.root.get_by_label("value of the new key").fill(text)
    person.root.locator(".agentnb-add").get_by_role("button", name="Add").click()
    person.does("edit", {"text": text, "as": "text"}, path)
    assert person.kernel(f"{{0}}.board[{path!r}]") == text
    person.press("Run back")

    person.root.get_by_label("name of the fork").fill("other way")
    person.view.press("Fork here")
    before, person.mirror = person.mirror, run_command(person.mirror, "fork", "other way")
    person.agrees()
    assert person.kernel(f"({{0}} is {person.name}, {{0}}.parent is {person.name}, {{0}}.name)") == (
        False, True, "other way",
    )  # fmt: skip
    person.press("Step")
    person.root.locator(".agentnb-forks").get_by_role("button", name=before.recipe.name).first.click()
    person.mirror = before
    person.agrees()
    assert person.kernel(f"{{0}} is {person.name}")
