"""Import the object that a tool's `impl` names. The only module that imports a recipe's code.

`tools/search.py#run` is a file, relative to the recipe's folder; `mytools.web#search` is a package, which the user must
allow. Files are executed again for each session, so that the next session sees changes on disk. Each gets a private
module name derived from its path, so that it cannot hide another module or be imported by its plain name. Sibling files
are imported by `from .sibling import name`; `import sibling` finds installed modules, as usual.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import re
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NoReturn

from agentnb.errors import Problem, RecipeError, did_you_mean, format_error_line
from agentnb.recipe.descriptions import describe_how_to_allow
from agentnb.recipe.model import ToolSpec
from agentnb.recipe.user_functions import is_function
from agentnb.world.tools.allow_list import NO_PATH, Allowed, is_dotted, resolve_path

PREFIX: Final = "_agentnb_tools_"
# held while a session imports its tools, because two sessions may start in two threads
ONE_AT_A_TIME: Final = threading.RLock()
_ODD: Final = re.compile(r"\W")


class _UncachedLoader(SourceFileLoader):
    """Loads the file as it is now: compiled code is neither read from disk nor written there."""

    def path_stats(self, path: Any) -> NoReturn:
        raise OSError(path)


class _Siblings:
    """Finds the files beside a tool's, under their private names."""

    @staticmethod
    def find_spec(name: str, path: Any = None, _target: Any = None) -> ModuleSpec | None:
        if not name.startswith(PREFIX) or not path:
            return None
        return FileFinder(next(iter(path)), (_UncachedLoader, [".py"])).find_spec(name)


class Modules:
    """The imports of one session start: each file is executed once, however many tools come from it."""

    def __init__(self, allowed: Allowed) -> None:
        self.allowed = allowed
        self._folders: set[str] = set()

    def find(self, spec: ToolSpec) -> Any:
        """Return the object that a tool's `impl` names.

        Raises:
            RecipeError: R155, it cannot be read; R156, R158, its source is not allowed; R157, there is no such
                file; R159, its module cannot be imported; R160, the module has no such attribute.
        """
        path, attr = _split(spec)
        target = self._find_target(spec, path)
        if isinstance(target, str):
            return self._find_attribute(spec, self._make_package(spec, target), attr, is_own_module=False)
        return self._find_attribute(spec, self._run(spec, target), attr, is_own_module=self.allowed.is_own(target))

    def check(self, spec: ToolSpec) -> None:
        """Raise an error for an `impl` that `find` would reject, as far as this can be known without executing code.

        A file is parsed; a package's module is not inspected. Without a base folder (the recipe is a string or a
        mapping), files are not looked up.

        Raises:
            RecipeError: R155 to R160, as `find`.
        """
        path, attr = _split(spec)
        target = "" if _is_python(path) and not any(self.allowed.bases()) else self._find_target(spec, path)
        if isinstance(target, str):
            return
        try:
            with warnings.catch_warnings(action="ignore"):  # importers get a warning
                names = _find_defined(ast.parse(target.read_bytes(), str(target)))
        except (SyntaxError, ValueError, OSError, RecursionError, MemoryError) as error:
            raise RecipeError(_make_broken_problem(spec, error, target)) from error
        if names is not None and attr not in names:
            raise _make_attribute_error(spec, attr, sorted(name for name in names if not name.startswith("_")))

    def _find_target(self, spec: ToolSpec, path: str) -> Path | str:
        """Return the file, or the dotted name of the module, that the path of an `impl` names, if it is allowed."""
        return self._resolve_file(spec, path) if _is_python(path) else self._check_module(spec, path)

    # -- files ---------------------------------------------------------------------------------------------------

    def _resolve_file(self, spec: ToolSpec, written: str) -> Path:
        """Return the resolved path of a tool's file, if it may be executed.

        R156: a tool's file is not in an allowed folder.
        """
        paths = [path for base in self.allowed.bases() if (path := resolve_path(base / written)) is not None]
        if not paths and Path(written).is_absolute():
            paths = [path for path in (resolve_path(Path(written)),) if path is not None]
        if not paths:
            self._raise_no_base(spec, written)
        may = [path for path in paths if self.allowed.holds_file(path)]
        if not may:
            location = (
                f"the recipe's folder is {self.allowed.recipe_folder}"
                if self.allowed.recipe_folder
                else "the recipe has no folder"
            )
            raise RecipeError(
                Problem("R156", f"tool {spec.id!r} comes from {_cut(str(paths[0]))}, which is not allowed",
                        _format_where(spec), f"{location}; also allowed: {', '.join(self.allowed.words) or 'nothing'}",
                        "move the file into the recipe's folder, or allow its own: "
                        + describe_how_to_allow(_cut(str(paths[0].parent))))
            )  # fmt: skip
        found = next((path for path in may if _is_file(path)), None)
        if found is None:
            raise RecipeError(_make_file_problem(spec, written, may[0]))
        return found

    def _raise_no_base(self, spec: ToolSpec, written: str) -> NoReturn:
        if self.allowed.recipe_folder is not None or self.allowed.folders or "\0" in written:
            raise _make_unreadable_error(spec, "this cannot be the path of a file")
        raise RecipeError(
            Problem(
                "R156",
                f"tool {spec.id!r} comes from the file {_cut(written)!r}, but the recipe has no folder",
                _format_where(spec),
                "the recipe was loaded from a string or a mapping, so there is no folder to search",
                f"load it from its file, or allow the folder that the tools are in: {describe_how_to_allow('FOLDER')}",
            )
        )

    def _run(self, spec: ToolSpec, file: Path) -> ModuleType:
        """Run a file, once per session start.

        R159: a tool's module cannot be imported.
        """
        name = f"{self._find_folder(file.parent)}.{_make_stem(file)}"
        if name in sys.modules:  # another tool's module, or one imported by it
            return sys.modules[name]
        module_spec = spec_from_loader(name, _UncachedLoader(name, str(file)))
        assert module_spec is not None
        assert module_spec.loader is not None
        module = sys.modules[name] = module_from_spec(module_spec)
        try:
            module_spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            sys.modules.pop(name, None)
            raise RecipeError(_make_broken_problem(spec, error, file)) from error
        return module

    def _find_folder(self, folder: Path) -> str:
        """Return the private package of a folder's files; its first use in a session discards earlier imports."""
        name = PREFIX + _digest(str(folder))[:12]
        if name not in self._folders:
            self._folders.add(name)
            if name in sys.modules:
                for old in [old for old in sys.modules if old == name or old.startswith(f"{name}.")]:
                    del sys.modules[old]
            package = sys.modules[name] = ModuleType(name)
            package.__path__ = [str(folder)]
            if _Siblings not in sys.meta_path:
                sys.meta_path.insert(0, _Siblings)  # before the one that reads and writes compiled code
        return name

    # -- packages ------------------------------------------------------------------------------------------------

    def _check_module(self, spec: ToolSpec, written: str) -> str:
        """Return the dotted name of a package's module, if it is allowed.

        R158: a tool comes from a package that is not allowed.
        """
        module = written.replace("/", ".")
        if not is_dotted(module):
            raise _make_unreadable_error(
                spec, f"{_cut(written)!r} is neither a file ending in .py nor a module's dotted name"
            )
        if not self.allowed.holds_package(module):
            raise RecipeError(self._make_not_allowed_problem(spec, f"the module {_cut(module)!r}", module))
        return module

    def _make_package(self, spec: ToolSpec, module: str) -> ModuleType:
        """Import a package's module.

        R159: a tool's module cannot be imported.
        """
        try:
            return importlib.import_module(module)
        except (Exception, SystemExit) as error:
            raise RecipeError(_make_broken_problem(spec, error, None)) from error

    def _make_not_allowed_problem(self, spec: ToolSpec, what: str, module: str) -> Problem:
        """R158: a tool comes from a package that is not allowed."""
        return Problem(
            "R158",
            f"tool {spec.id!r} comes from {what}, which is not allowed",
            _format_where(spec),
            f"packages are imported only if they are allowed; these are: {', '.join(self.allowed.words) or 'none'}",
            f"if you trust it, allow it: {describe_how_to_allow(_cut(module))}",
        )

    def _find_attribute(self, spec: ToolSpec, module: ModuleType, attr: str, *, is_own_module: bool) -> Any:
        """Return a module's attribute.

        Outside the recipe's own folder, it must be defined in the module or in another allowed one; otherwise a recipe
        could access whatever an allowed module imports.
        """
        try:
            value = getattr(module, attr)
        except Exception:  # noqa: BLE001  (a module may have a __getattr__ of its own)
            value = _MISSING
        if value is _MISSING:
            known = [name for name in vars(module) if not name.startswith("_")]
            raise _make_attribute_error(spec, attr, known)
        home = getattr(value, "__module__", None) if is_function(value) or inspect.isclass(value) else None
        if is_own_module or not isinstance(home, str) or home.startswith(PREFIX) or self.allowed.holds_package(home):
            return value
        raise RecipeError(
            self._make_not_allowed_problem(spec, f"{home}.{attr}, that {module.__name__} imports,", f"{home}.{attr}")
        )


_MISSING: Final = object()


def _split(spec: ToolSpec) -> tuple[str, str]:
    """Return the path and the attribute of an `impl`."""
    path, _, attr = spec.impl.rpartition("#")
    if not path or not attr.isidentifier() or (attr.startswith("__") and attr.endswith("__")):
        raise _make_unreadable_error(spec, f"{attr!r} is not a name" if path else "it has no '#'")
    return path, attr


def _is_python(path: str) -> bool:
    return path.lower().endswith(".py")


def _format_where(spec: ToolSpec) -> str:
    return str(spec.place or f"tool {spec.id!r}")


def _cut(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:199]}…"


def _make_unreadable_error(spec: ToolSpec, why: str) -> RecipeError:
    """R155: a tool's impl cannot be parsed."""
    return RecipeError(
        Problem("R155", f"the impl of tool {spec.id!r} cannot be parsed: {_cut(spec.impl)!r}", _format_where(spec), why,
                "write module.py#name (from the recipe's folder), or package.module#name (of an allowed package)")
    )  # fmt: skip


def _make_attribute_error(spec: ToolSpec, attr: str, known: list[str]) -> RecipeError:
    """R160: a tool's module has no such attribute."""
    return RecipeError(
        Problem("R160", f"there is no {_cut(attr)!r} in {_cut(spec.impl.rpartition('#')[0])!r}", _format_where(spec),
                f"it has: {', '.join(known[:12]) or 'nothing public'}",
                did_you_mean(attr, known, "write a name the module defines after the '#'"))
    )  # fmt: skip


def _find_defined(module: ast.Module) -> set[str] | None:
    """Return the names that a module may bind at its top level; None if only executing it would tell."""
    names = {name for node in ast.walk(module) if isinstance(node, ast.Global) for name in node.names}
    border: list[ast.AST] = [*module.body]
    while border:
        node = border.pop()
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
                continue  # names bound in nested scopes are not attributes of the module
            case ast.Lambda():
                continue
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names.update((each.asname or each.name).partition(".")[0] for each in aliases)
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.add(name)
            case ast.Name(id="globals" | "vars" | "locals" | "setattr" | "exec" | "eval"):
                return None  # names may be created dynamically
        border += ast.iter_child_nodes(node)
    return None if {"*", "__getattr__"} & names else names


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()  # not a pipe or a device, whose content may never end
    except NO_PATH:
        return False


def _make_stem(file: Path) -> str:
    """Return a module name for a file.

    Its stem if that is an identifier, so that `from .name` finds the same module.
    """
    if file.stem.isidentifier():
        return file.stem
    return f"{_ODD.sub('_', file.stem)}_{_digest(file.name)[:6]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _make_file_problem(spec: ToolSpec, written: str, path: Path) -> Problem:
    """R157: the file of a tool does not exist."""
    similar = {Path(written).with_name(name).as_posix(): None for name in _iter_neighbors(path.parent)}
    return Problem(
        "R157",
        f"there is no file {_cut(written)!r} for tool {spec.id!r}",
        _format_where(spec),
        f"looked for {_cut(str(path))}; beside it: {', '.join(islice(similar, 8)) or 'no Python files'}",
        did_you_mean(written, similar, "write its path from the recipe's folder"),
    )


def _iter_neighbors(folder: Path) -> Iterator[str]:
    try:
        yield from islice((path.name for path in sorted(folder.iterdir()) if path.suffix == ".py"), 200)
    except NO_PATH:
        return


def _make_broken_problem(spec: ToolSpec, error: BaseException, file: Path | None) -> Problem:
    """R159: a tool's module cannot be imported."""
    line = _find_line(error, file)
    module = spec.impl.rpartition("#")[0]
    message = format_error_line(error).splitlines()[0]
    order = "fix the module"
    if isinstance(error, ModuleNotFoundError):
        sibling = file is not None and error.name is not None and _is_file(file.with_name(f"{error.name}.py"))
        order = f"write `from .{error.name} import ...` for a file beside it" if sibling else f"install {error.name!r}"
        if file is None and f"{module.replace('/', '.')}.".startswith(f"{error.name}."):
            order = "see that it is installed, and that it is written so"
    return Problem(
        "R159",
        f"the module {_cut(module)!r} of tool {spec.id!r} cannot be imported",
        line or _format_where(spec),
        message,
        order,
    )


def _find_line(error: BaseException, file: Path | None) -> str:
    """Return the line of a tool's file at which its import failed; empty if unknown."""
    if file is None:
        return ""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f"{file}:{error.lineno}"
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == str(file)]
    return f"{file}:{lines[-1]}" if lines else str(file)
