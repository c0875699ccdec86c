"""An extension of Griffe: the section `Example:` of our docstrings is what Griffe calls `Examples:`."""

from __future__ import annotations

from typing import Any

import griffe


class Examples(griffe.Extension):
    """Rename the section, so that its code is shown as code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rename the section of one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")
