"""modules: from a tool's `impl` to the object that it names. The only place where code of a recipe is imported.

`tools/search.py#run` is a file, looked for from the recipe's folder; `mytools.web#search` is a package, and only one
that the user allows. Files are run anew for each session, so that a change on disk is seen by the next one; each gets a
private name made from its path, so that it can neither hide another module nor be found by its plain name. Files beside
it are reached by `from .sibling import name`; `import sibling` finds what is installed, as everywhere.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import re
import sys
import threading
import traceback
from collections.abc import Iterator
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NoReturn

from agentnb.board.secrets import hidden
from agentnb.errors import Problem, RecipeError, did_you_mean
from agentnb.recipe.model import ToolSpec
from agentnb.world.tools.allowed import NO_PATH, Allowed, is_dotted, resolved

PREFIX: Final = "_agentnb_tools_"
ONE_AT_A_TIME: Final = threading.RLock()  # held while a session imports its tools: two may begin in two threads
_ODD: Final = re.compile(r"\W")


class _Fresh(SourceFileLoader):
    """Reads a file as it is now: neither takes compiled code from disk nor leaves any there."""

    def path_stats(self, path: Any) -> NoReturn:
        raise OSError(path)


class _Siblings:
    """Finds the files beside a tool's, under their private names."""

    @staticmethod
    def find_spec(name: str, path: Any = None, _target: Any = None) -> ModuleSpec | None:
        if not name.startswith(PREFIX) or not path:
            return None
        return FileFinder(next(iter(path)), (_Fresh, [".py"])).find_spec(name)


class Modules:
    """What one session start has imported: each file once, however many tools come from it."""

    def __init__(self, allowed: Allowed) -> None:
        self.allowed = allowed
        self._folders: set[str] = set()

    def find(self, spec: ToolSpec) -> Any:
        """Return the object that a tool's `impl` names.

        Raises:
            RecipeError: R155, it cannot be read; R156, R158, it comes from where nobody allowed; R157, there is no such
                file; R159, its module cannot be imported; R160, the module has no such attribute.
        """
        path, _, attr = spec.impl.rpartition("#")
        if not path or not attr.isidentifier() or (attr.startswith("__") and attr.endswith("__")):
            why = f"{attr!r} is no name" if path else "it has no '#'"
            raise _unreadable(spec, why)
        if not path.lower().endswith(".py"):
            return self._attribute(spec, self._package(spec, path), attr, own=False)
        file = self._file(spec, path)
        return self._attribute(spec, self._run(spec, file), attr, own=self.allowed.is_own(file))

    # -- files ---------------------------------------------------------------------------------------------------

    def _file(self, spec: ToolSpec, written: str) -> Path:
        """Return the resolved path of a tool's file, if it may be run.

        R156: a tool's file lies where nobody allowed it.
        """
        paths = [path for base in self.allowed.bases() if (path := resolved(base / written)) is not None]
        if not paths and Path(written).is_absolute():
            paths = [path for path in (resolved(Path(written)),) if path is not None]
        if not paths:
            self._no_base(spec, written)
        may = [path for path in paths if self.allowed.holds_file(path)]
        if not may:
            here = f"the recipe's folder is {self.allowed.own}" if self.allowed.own else "the recipe has no folder"
            raise RecipeError(
                Problem("R156", f"tool {spec.id!r} comes from {_cut(str(paths[0]))}, which is not allowed",
                        _where(spec), f"{here}; allowed besides: {', '.join(self.allowed.words) or 'nothing'}",
                        f"move the file into the recipe's folder, or allow its own: "
                        f"nb.load(path, allow=[{_cut(str(paths[0].parent))!r}])")
            )  # fmt: skip
        found = next((path for path in may if _is_file(path)), None)
        if found is None:
            raise RecipeError(_no_file(spec, written, may[0]))
        return found

    def _no_base(self, spec: ToolSpec, written: str) -> NoReturn:
        if self.allowed.own is not None or self.allowed.folders or "\0" in written:
            raise _unreadable(spec, "this cannot be the path of a file")
        raise RecipeError(
            Problem("R156", f"tool {spec.id!r} comes from the file {_cut(written)!r}, and the recipe has no folder",
                    _where(spec), "the recipe was given as text or as a mapping, so there is no place to look from",
                    "load it from its file, or allow the folder that the tools are in: nb.load(text, allow=[folder])")
        )  # fmt: skip

    def _run(self, spec: ToolSpec, file: Path) -> ModuleType:
        """Run a file, once a session start.

        R159: a tool's module cannot be imported.
        """
        name = f"{self._folder(file.parent)}.{_stem(file)}"
        if name in sys.modules:  # another tool's, or imported by one
            return sys.modules[name]
        module_spec = spec_from_loader(name, _Fresh(name, str(file)))
        assert module_spec is not None
        assert module_spec.loader is not None
        module = sys.modules[name] = module_from_spec(module_spec)
        try:
            module_spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            sys.modules.pop(name, None)
            raise RecipeError(_broken(spec, error, file)) from error
        return module

    def _folder(self, folder: Path) -> str:
        """Return the private package that the files of a folder belong to; at its first use all of it is forgotten."""
        name = PREFIX + _digest(str(folder))[:12]
        if name not in self._folders:
            self._folders.add(name)
            for old in [old for old in sys.modules if old == name or old.startswith(f"{name}.")]:
                del sys.modules[old]
            package = sys.modules[name] = ModuleType(name)
            package.__path__ = [str(folder)]
            if _Siblings not in sys.meta_path:
                sys.meta_path.append(_Siblings)
        return name

    # -- packages ------------------------------------------------------------------------------------------------

    def _package(self, spec: ToolSpec, written: str) -> ModuleType:
        """Import a package's module, if it is allowed.

        R158: a tool comes from a package that nobody allowed.
        R159: a tool's module cannot be imported.
        """
        module = written.replace("/", ".")
        if not is_dotted(module):
            raise _unreadable(spec, f"{_cut(written)!r} is neither a file ending in .py nor a module's dotted name")
        if not self.allowed.holds_package(module):
            raise RecipeError(self._not_allowed(spec, f"the module {_cut(module)!r}", module))
        try:
            return importlib.import_module(module)
        except (Exception, SystemExit) as error:
            raise RecipeError(_broken(spec, error, None)) from error

    def _not_allowed(self, spec: ToolSpec, what: str, module: str) -> Problem:
        """R158: a tool comes from a package that nobody allowed."""
        return Problem(
            "R158",
            f"tool {spec.id!r} comes from {what}, which is not allowed",
            _where(spec),
            f"packages are imported only if they are allowed; these are: {', '.join(self.allowed.words) or 'none'}",
            f"allow it, if you trust it: nb.load(path, allow=[{_cut(module)!r}])",
        )

    def _attribute(self, spec: ToolSpec, module: ModuleType, attr: str, *, own: bool) -> Any:
        """Return a module's attribute.

        Outside the recipe's own folder it must be the module's own, or an allowed one's: else a recipe could reach
        whatever an allowed module happens to import for itself.

        R160: a tool's module has no such attribute.
        """
        try:
            found = getattr(module, attr)
        except Exception:  # noqa: BLE001  (a module may have a __getattr__ of its own)
            found = _MISSING
        if found is _MISSING:
            known = [name for name in vars(module) if not name.startswith("_")]
            raise RecipeError(
                Problem("R160", f"there is no {_cut(attr)!r} in {_cut(spec.impl.rpartition('#')[0])!r}", _where(spec),
                        f"it has: {', '.join(known[:12]) or 'nothing public'}",
                        did_you_mean(attr, known, "name what the module defines after the '#'"))
            )  # fmt: skip
        home = getattr(found, "__module__", None) if inspect.isroutine(found) or inspect.isclass(found) else None
        if own or not isinstance(home, str) or home.startswith(PREFIX) or self.allowed.holds_package(home):
            return found
        raise RecipeError(self._not_allowed(spec, f"{home}.{attr}, that {module.__name__} imports,", f"{home}.{attr}"))


_MISSING: Final = object()


def _where(spec: ToolSpec) -> str:
    return str(spec.place or f"tool {spec.id!r}")


def _cut(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:199]}…"


def _unreadable(spec: ToolSpec, why: str) -> RecipeError:
    return RecipeError(
        Problem("R155", f"the impl of tool {spec.id!r} cannot be read: {_cut(spec.impl)!r}", _where(spec), why,
                "write module.py#name (from the recipe's folder), or package.module#name (of an allowed package)")
    )  # fmt: skip


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()  # no pipe, no device: reading those may never end
    except NO_PATH:
        return False


def _stem(file: Path) -> str:
    """Return a module's name for a file: its own where it is one, so that `from .name` finds the same module."""
    if file.stem.isidentifier():
        return file.stem
    return f"{_ODD.sub('_', file.stem)}_{_digest(file.name)[:6]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _no_file(spec: ToolSpec, written: str, wanted: Path) -> Problem:
    near = {Path(written).with_name(name).as_posix(): None for name in _neighbours(wanted.parent)}
    return Problem(
        "R157",
        f"there is no file {_cut(written)!r} for tool {spec.id!r}",
        _where(spec),
        f"looked for {_cut(str(wanted))}; beside it: {', '.join(islice(near, 8)) or 'no Python files'}",
        did_you_mean(written, near, "write its path from the recipe's folder"),
    )


def _neighbours(folder: Path) -> Iterator[str]:
    try:
        yield from islice((path.name for path in sorted(folder.iterdir()) if path.suffix == ".py"), 200)
    except NO_PATH:
        return


def _broken(spec: ToolSpec, error: BaseException, file: Path | None) -> Problem:
    """R159: a tool's module cannot be imported."""
    line = _line(error, file)
    module = spec.impl.rpartition("#")[0]
    told = hidden(f"{type(error).__name__}: {error}".splitlines()[0])
    order = "mend the module"
    if isinstance(error, ModuleNotFoundError):
        sibling = file is not None and error.name is not None and _is_file(file.with_name(f"{error.name}.py"))
        order = f"write `from .{error.name} import ...` for a file beside it" if sibling else f"install {error.name!r}"
        if file is None and f"{module.replace('/', '.')}.".startswith(f"{error.name}."):
            order = "see that it is installed, and that it is written so"
    return Problem(
        "R159", f"the module {_cut(module)!r} of tool {spec.id!r} cannot be imported", line or _where(spec), told, order
    )


def _line(error: BaseException, file: Path | None) -> str:
    """Return where in a tool's file its import failed; nothing where it is not known."""
    if file is None:
        return ""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f"{file}:{error.lineno}"
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == str(file)]
    return f"{file}:{lines[-1]}" if lines else str(file)
