"""networkx: a directed graph from Python as a recipe; its nodes carry functions, tools, agents, people.

Graph attributes: `name`, `entry` (a node or a list; else the nodes that no way leads to), `inputs` (names, or names
with their JSON schemas; a schema's `default` is put on the board), `outputs`, `init`, `limits` (`max_steps`, ...).

Node attributes: `kind` (`function` where it is left out, `subgraph` where there is a `graph`), `label`, `inputs`
(argument -> board path), `reads`, `writes`, and by kind:

- function, tool: `function` (a callable or a name; left out, the node's id is the name), `output` (the key for a value
  that is no mapping; else the node's id); a tool also `timeout`, `attempts`, `backoff`, `blocking`, and `repeatable`
  (True: where a run was cut before the answer came, the call goes out once more by itself; else it is asked about)
- agent: `ref` or `agent_ref` (else the node's id), `prompt`, `model`, `output`; calls go out as a tool's do
- human: `prompt`, `options`, `schema` (the JSON Schema that an answer must fit: a number, yes or no, one of some),
  `role`, `timeout`, `output`
- evaluator: `target` (the board path of what is judged), `ref` (the judge; else the node's id), `threshold`,
  `max_refinements`, `feedback` (the key for the critique), `pass_route` and `fail_route` (nodes; None or "" ends the
  run), or edges with the `value` "pass" or "fail"; `profile`, `model`, and the words of calls
- generative: `goal`, `schema` (the JSON Schema of what it writes), `prompt`, `model`, and the words of calls
- router: `input_key` (board path), `routes` (value -> node; None or "" ends the run), `default`
- loop: `graph`, and `times`, `while` or `until`; `max` rounds
- subgraph: `graph`; with `inputs` (inner key -> outer path) or `outputs` (outer key -> inner path) it has a board of
  its own, else it shares the one around it
- noop, join: nothing

Edge attributes: `when` (a condition), `kind`, `value` (of a route out of a router), `label`.

A node's id is its text. Where an id stands in more than one graph, the nodes of inner graphs are `owner/id`.
"""
