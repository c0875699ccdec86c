"""Recipes that other processes can be sent, as a module can be imported there."""

from __future__ import annotations

import os
import time
from pathlib import Path

import networkx as nx

import agentnb as nb


def square(n):
    if n == 3:
        raise ValueError("three")
    if n == 5:
        time.sleep(30)
    if n == 7:
        os._exit(9)
    return {"out": n * n}


def squares():
    graph = nx.DiGraph(name="squares", entry="square")
    graph.add_node("square", function=square, inputs={"n": "n"})
    return nb.load(graph)


def count(n):
    with Path(os.environ["SWEEPING"]).open("ab", buffering=0) as file:
        file.write(b"x")
    time.sleep(0.005)
    return {"out": n}


def slowly():
    graph = nx.DiGraph(name="slowly", entry="count")
    graph.add_node("count", function=count, inputs={"n": "n"})
    return nb.load(graph)
