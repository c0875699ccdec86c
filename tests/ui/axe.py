"""axe: what axe-core finds on a page, in both themes."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

# What differs between the themes is colors, so in the second one the rules on colors are tried alone.
RULES = {"light": {}, "dark": {"runOnly": ["color-contrast", "link-in-text-block"]}}
FOUND = """async ([root, options]) => {
  const {violations, passes} = await axe.run(root, {resultTypes: ['violations'], ...options});
  const nodes = rule => rule.nodes.slice(0, 3).map(node => [node.target, (node.failureSummary || '').slice(0, 200)]);
  return [passes.length, violations.map(rule => [rule.id, rule.impact, nodes(rule)])];
}"""


@cache
def source():
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def violations(page, root):
    """Return everything that axe-core finds in an element, of any impact, by theme."""
    page.evaluate(f"{source()}; 0")
    results = {}
    for theme, options in RULES.items():
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        passes, results[theme] = page.evaluate(FOUND, [root, options])
        assert passes, "axe looked at nothing"
    return {theme: rules for theme, rules in results.items() if rules}
