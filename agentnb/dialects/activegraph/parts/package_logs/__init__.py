"""Logs of the activegraph package: read them, and export runs so that the package can open them."""

from agentnb.dialects.activegraph.parts.package_logs.records import LogEvent, LogRun, PackageLog
from agentnb.dialects.activegraph.parts.package_logs.session import ActiveGraphRun, open_activegraph
from agentnb.dialects.activegraph.parts.package_logs.writing import to_activegraph

__all__ = ["ActiveGraphRun", "LogEvent", "LogRun", "PackageLog", "open_activegraph", "to_activegraph"]
