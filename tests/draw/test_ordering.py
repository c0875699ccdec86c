from agentnb.recipe.model import Edge, Node, Region
from tests.draw.drawn_recipes import diamond, picture, recipe, support


def order(given):
    shown = picture(given)
    ids = {box.name: box.id for box in shown.boxes}
    return {(ids[above], ids[below]) for above, below in shown.order}


def test_a_successor_of_a_composite_node_comes_after_the_last_node_of_its_body():
    actual = order(support())
    assert ("critic", "send") in actual
    assert ("page", "send") in actual
    assert ("write", "send") not in actual


def test_the_last_nodes_of_inner_regions_count_too():
    nodes = [
        Node("outer", "loop", bodies=("a",)),
        Node("inner", "loop", scope="a", bodies=("b",)),
        Node("deep", "tool", scope="b"),
        Node("after", "tool"),
    ]
    regions = {"a": Region("a", ("inner",), "", "outer"), "b": Region("b", ("deep",), "", "inner")}
    assert ("deep", "after") in order(recipe(nodes, [Edge("outer", "after")], regions=regions))


def test_an_edge_back_does_not_affect_the_order():
    nodes = [Node("first", "tool"), Node("loop", "loop", bodies=("a",)), Node("in", "tool", scope="a")]
    edges = [Edge("first", "loop"), Edge("loop", "first", "loop_back")]
    assert order(recipe(nodes, edges, regions={"a": Region("a", ("in",), "", "loop")})) == set()


def test_unreachable_nodes_are_placed_together():
    nodes = [Node(f"b{number}", "behavior") for number in range(9)]
    assert {("b0", "b3"), ("b3", "b6"), ("b5", "b8")} <= order(recipe(nodes, entry=()))


def test_a_recipe_with_its_own_order_is_not_reordered():
    assert order(diamond()) == set()
