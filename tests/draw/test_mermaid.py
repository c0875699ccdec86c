import re

from hypothesis import given
from hypothesis import strategies as st

from agentnb.draw.mermaid import quote_label, to_mermaid
from tests.draw.drawn_recipes import hostile, recipe, recipes, support

# Every line that a drawing may consist of: ids are our own, and labels hold nothing that could end them.
TEXT = r"(?:[^\W_]|[ _\-,:.=+/!?'*…→×◷]|#\d+;|●)*"
LINES = re.compile(
    r"flowchart (?:TB|LR|BT|RL)"
    rf'|(?:  )+n\d+[\[({{/\\]+"{TEXT}"[\])}}/\\]+:::\w+'
    r'|(?:  )+s\d+\(\("●"\)\)'
    rf'|(?:  )+subgraph r\d+\["{TEXT}"\]'
    r"|(?:  )+end"
    rf'|  [ns]\d+ (?:-->|==>|-\.->|-\.-)(?:\|"{TEXT}"\|)? n\d+'
    r"|  classDef \w+ fill:#\w+,stroke:#\w+,color:#\w+"
    r"|  linkStyle \d+(?:,\d+)* stroke:#\w+"
)


def wrong(text):
    return [line for line in text.splitlines() if not LINES.fullmatch(line)]


def test_the_flowchart_has_regions_routes_and_error_edges():
    text = to_mermaid(support())
    assert wrong(text) == []
    assert '-->|"refund"| ' in text
    assert '-.->|"error: ToolError"| ' in text
    assert 'subgraph r0["Loop body"]' in text
    assert '{{"route"}}:::choose' in text


def test_text_of_a_recipe_is_never_parsed_as_syntax():
    assert wrong(to_mermaid(hostile(), direction="LR")) == []


@given(recipes())
def test_any_recipe_is_a_flowchart(given):
    text = to_mermaid(given)
    assert wrong(text) == []
    assert len(re.findall(r":::", text)) == len(given.nodes)


@given(st.text())
def test_a_label_cannot_close_its_quotes(text):
    assert re.fullmatch(TEXT, quote_label(text))


def test_an_empty_recipe_is_a_flowchart():
    assert to_mermaid(recipe([])).strip() == "flowchart TB"
