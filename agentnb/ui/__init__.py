"""ui: what a person touches in a notebook: the cockpit, and plain controls. A widget owns nothing but its look."""

from agentnb.ui.controls import Controls
from agentnb.ui.debugger import Debugger, cockpit, debug

__all__ = ["Controls", "Debugger", "cockpit", "debug"]
