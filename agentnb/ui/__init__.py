"""The notebook interface: the cockpit and plain ipywidgets controls. A widget holds only its own display state."""

from agentnb.ui.controls import Controls
from agentnb.ui.debugger import Debugger, cockpit, debug

__all__ = ["Controls", "Debugger", "cockpit", "debug"]
