"""The notebook interface: the cockpit and plain ipywidgets controls. A widget holds only its own display state."""
