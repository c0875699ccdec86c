"""networkx: a directed graph from Python as a recipe; its nodes are functions, tools, agents, people.

Graph attributes: `name`, `entry` (a node or a list; default: the nodes without incoming edges), `inputs` (names, or
names with their JSON schemas; a schema's `default` is put on the board; without one, the input is required), `outputs`,
`init`, `limits` (`max_steps`, ...).

Node attributes: `kind` (default: `subgraph` if there is a `graph`, otherwise `function`), `label`, `inputs` (argument
-> board path), `reads`, `writes`, `reducers` (key -> function of the old and the new value, whose result is written;
without an old value, the new one is written), and by kind:

- function, tool: `function` (a callable or a name; left out, the node's id is the name), `output` (the key for the
  result; without it, a mapping is merged into the board, and any other result is written under the node's id). With
  `inputs` it is called by keyword. Without them, a function with one required positional parameter gets the read-only
  board; a parameter with a default keeps it. A parameter `rng` gets a `random.Random` that depends on the session's
  seed, the node and how often it ran before: replayed, or run again after going back, it draws the same numbers. Other
  random numbers are not repeatable. A tool also has `timeout`, `attempts`, `backoff`, `blocking`, and `repeatable`
  (True: if a run was interrupted before the answer arrived, the call is repeated automatically; otherwise a person
  decides)
- agent: `ref` or `agent_ref` (else the node's id), `prompt`, `model`, `output` (the key for an answer that is not a
  mapping; a mapping is merged into the board), and the call options of a tool
- llm: `prompt` (a string, or a list of messages with `role` and `content`) and `system`, `model`, `output` (the key for
  the answer; else the node's id), and the call options
- human: `prompt`, `options`, `schema` (the JSON Schema of the answer: a number, yes or no, one of several values),
  `role`, `timeout`, `output`
- evaluator: `target` (the board path of the judged value), `ref` (the judge; else the node's id), `threshold`,
  `max_refinements`, `feedback` (the key for the critique), `pass_route` and `fail_route` (nodes; None or "" ends the
  run), or edges with the `value` "pass" or "fail"; `profile`, `model`, and the call options
- generative: `goal`, `schema` (the JSON Schema of its writes), `prompt`, `model`, and the call options
- router: `input_key` (board path), `routes` (value -> node; None or "" ends the run), `default`
- loop: `graph`, and `times`, `while` or `until`; `max` rounds
- subgraph: `graph`; with `inputs` (inner key -> outer path) or `outputs` (outer key -> inner path) it has its own
  board, otherwise it shares the surrounding one
- noop, join: nothing

A graph with the attribute `supersteps=True` runs in supersteps: all edges whose `when` holds are followed, nodes that
are scheduled together do not see each other's writes, and a key that two of them write needs a reducer. Such a graph
may have `reducers` for all nodes, `transient` keys, which last for one superstep, and `untracked` keys, which are lost
when the run waits for a person (for an answer, or at a `breakpoint`), also in what was sent to a node; edges with the
same `join` into a node activate it when all of them have been followed; `defer=True` lets a node wait until nothing
else is scheduled; and `choose` is a function of the board that returns further targets: a node, a `nb.Send(node,
input)` (the node runs for this input, which it reads as `input`), or a list of them.

A function node with `asks=True` may call `nb.ask(question)`: the session waits for the answer, and the function runs
again with it. `breakpoint` ("before" or "after") makes every session stop there.

An agent, an evaluator and a generative node may have `simulated` answers for sessions without a model: a string or a
mapping, or a list of them; each call gets the next one, and the last one is repeated.

Prompts and goals are templates: `{{ order.total }}` is the value on the board.

Edge attributes: `when` (a condition text, JsonLogic, or a callable of the board), `kind` (all `parallel` edges are
followed, otherwise the first edge whose `when` holds; a node of kind `join` waits for all nodes that lead to it),
`value` (of a route out of a router), `label`.

A node's id is its string form. If an id is in more than one graph, the nodes of inner graphs are `owner/id`.
"""
