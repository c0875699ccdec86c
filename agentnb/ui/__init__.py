"""ui: what a person touches in a notebook: the cockpit, and plain ipywidgets controls. A widget owns nothing but its look."""

from agentnb.ui.cockpit import Debugger, cockpit
from agentnb.ui.controls import controls

__all__ = ["Debugger", "cockpit", "controls"]
