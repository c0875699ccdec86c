"""The gallery of the site: each sample with a run of it as a live page, its recipe, and a worksheet.

`python docs/tools/gallery.py FOLDER` writes the pages of the runs and the worksheets alone.
"""

from __future__ import annotations

import inspect
import json
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import agentnb as nb
from agentnb.samples import ANSWERS, EVENTS

SAMPLES = Path(nb.__file__).parent / "samples"
MODULES = {
    "activegraph": "reactive", "burr": "state_machines", "langgraph": "state_graphs", "networkx": "graphs",
    "polaris": "flows", "symphony": "agents",
}  # fmt: skip
MOST = 4  # questions of a worksheet
LONGEST = 40  # characters of a value that is asked for


@cache
def ran(name: str) -> nb.Session:
    """Return a finished run of a sample, without a network."""
    session = nb.Session(nb.samples(name), answers=ANSWERS.get(name), clock=nb.FrozenClock())
    for type_, payload in EVENTS.get(name, ()):
        session.emit(type_, payload)
    session.run()
    for _ in session.pending:
        session.approve()
        session.run()
    if session.status not in {"finished", "idle"}:
        raise RuntimeError(f"sample {name!r} did not end: {session.error or session.status}")
    return session


def questions(session: nb.Session) -> list[Any]:
    """Return the exercises of a worksheet: which node runs next where there is a choice; and one value."""
    outgoing: dict[str, int] = {}
    for edge in session.recipe.edges:
        outgoing[edge.source] = outgoing.get(edge.source, 0) + 1
    steps = list(session.trace.steps)[:-1]
    forks = [step.step for step in steps if outgoing.get(step.node_id, 0) > 1]
    asked: list[Any] = (forks or [step.step for step in steps])[:MOST]
    for step in reversed(list(session.trace.steps)):
        simple = {key: value for key, value in step.outputs.items() if isinstance(value, int | float | str)}
        short = [key for key, value in simple.items() if len(str(value)) < LONGEST]
        if short:
            return [*asked, {"step": step.step - 1, "key": short[0]}]
    return asked


@cache
def attachments() -> dict[str, bytes]:
    """Return the files of the gallery that are no pages of the site: runs, worksheets and pictures."""
    files: dict[str, bytes] = {}
    for sample in nb.samples():
        session = ran(sample.name)
        files[f"gallery/runs/{sample.name}.html"] = str(session.to_html()).encode()
        files[f"gallery/runs/{sample.name}-worksheet.html"] = str(session.to_html(quiz=questions(session))).encode()
        files[f"gallery/pictures/{sample.name}.svg"] = session.draw(board=False).svg.encode()
    return files


def recipe_text(name: str, dialect: str) -> tuple[str, str]:
    """Return (language, text) of a sample's recipe."""
    file = SAMPLES / f"{name}.yaml"
    if file.exists():
        return "yaml", file.read_text(encoding="utf-8").strip()
    module = import_module(f"agentnb.samples.{MODULES[dialect]}")
    return "python", inspect.getsource(module).strip()


def pages() -> dict[str, str]:
    """Return the pages of the gallery: a card for each sample, and a page for each."""
    cards, written = [], {}
    for sample in nb.samples():
        about = sample.description[0].upper() + sample.description[1:]
        cards.append(
            f'<div class="card" markdown>\n\n### [{sample.name}]({sample.name}.md)\n\n'
            f'<div class="picture">[![The graph of {sample.name}](pictures/{sample.name}.svg){{ loading=lazy }}]'
            f"({sample.name}.md)</div>\n\n{about}. *{sample.dialect}*\n\n</div>\n".replace(
                '<div class="picture">', '<div class="picture" markdown>'
            )
        )
        written[f"gallery/{sample.name}.md"] = sample_page(sample.name, sample.dialect, about)
    written["gallery/index.md"] = INDEX + '\n<div class="cards" markdown>\n\n' + "\n".join(cards) + "\n</div>\n"
    return written


INDEX = """\
---
hide: [navigation, toc]
---

# Gallery

Each card is a recipe that ships with agentnb, with a recorded run of it as a live page: move the slider, press the
arrow keys, select a node. The pages need no kernel and no network. Each sample also has a worksheet, which asks what
happens next and shows it after the right answer.
"""
LIVE = (
    "With a key in the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY), `{command} --live` asks a "
    'real model; `--llm provider:model` names one. In a cell: `nb.Session(recipe, llm="openai:gpt-4o")`.'
)


def make_command(name: str) -> str:
    """Return the command that runs a sample."""
    emits = "".join(f" \\\n  --emit {type_}='{json.dumps(payload)}'" for type_, payload in EVENTS.get(name, ()))
    return f"agentnb run {name}{emits}"


def sample_page(name: str, dialect: str, about: str) -> str:
    """Return the page of one sample."""
    session = ran(name)
    language, text = recipe_text(name, dialect)
    asks = session.trace.frames.calls["kind"].isin(["agent", "llm"]).any()
    command = make_command(name)
    live = (
        LIVE.format(command=f"agentnb run {name} ..." if name in EVENTS else command) if asks else "It asks no model."
    )
    answers = f", answers={ANSWERS[name]!r}" if name in ANSWERS else ""
    emits = "".join(f"\nsession.emit({type_!r}, {payload!r})" for type_, payload in EVENTS.get(name, ()))
    extra = f' It needs `pip install "agentnb-kit[{dialect}]"`.' if dialect in {"burr", "langgraph"} else ""
    return f"""\
---
hide: [navigation, toc]
---

# {name}

{about}. A recipe of [{dialect}](../recipes/{dialect}.md).{extra}

<iframe class="run" src="runs/{name}.html" title="A run of {name}" loading="lazy"></iframe>

[Open the run](runs/{name}.html){{ target=_blank }} ·
[Open the worksheet](runs/{name}-worksheet.html){{ target=_blank }}

## Run it

```python
import agentnb as nb

recipe = nb.samples("{name}")
session = nb.Session(recipe{answers}){emits}
session  # the cockpit
```

On the command line:

```sh
{command}
```

{live}

## The recipe

```{language}
{text}
```
"""


if __name__ == "__main__":
    for uri, content in attachments().items():
        file = Path(sys.argv[1]) / uri
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
