"""The pytest plugin: the fixture `replay_golden` and the option `--update-goldens`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from agentnb.testing.goldens import GoldenReport


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--update-goldens`."""
    parser.getgroup("agentnb").addoption(
        "--update-goldens", action="store_true", help="record the goldens of replay_golden again, from sessions"
    )


@pytest.fixture
def replay_golden(request: pytest.FixtureRequest) -> Callable[..., GoldenReport]:
    """Return a function that replays a golden, and fails the test where it differs.

    `replay_golden(session_or_recipe, name, holds=("route", "values", "calls"), redact=())`: the golden is
    `goldens/NAME.jsonl` beside the test. Nothing is called: of a session only the recipe is used. With
    `--update-goldens` a session is run (if it has not begun) and recorded; a recipe alone is replayed as usual. If
    `redact` has changed since, the test fails until it is recorded again.
    """
    folder = Path(request.path).parent / "goldens"
    update = request.config.getoption("--update-goldens")

    def replay(
        subject: Any, name: str, holds: Collection[Any] = ("route", "values", "calls"), redact: Sequence[str] = ()
    ) -> GoldenReport:
        __tracebackhide__ = True
        from agentnb.errors import AgentNbError
        from agentnb.recordings.golden_files import find_redacted_paths
        from agentnb.session.session import Session
        from agentnb.testing import goldens

        path = folder / f"{name}.jsonl"
        redact = (redact,) if isinstance(redact, str) else redact
        try:
            if update and isinstance(subject, Session):
                goldens.record_golden(subject, path, redact, holds)
            elif not path.exists():
                pytest.fail(f"there is no golden {path}; record it with: pytest --update-goldens", pytrace=False)
            elif redact and set(redact) != set(find_redacted_paths(str(path))):
                pytest.fail(
                    f"golden {path} was recorded with another `redact`: {list(find_redacted_paths(str(path)))}; "
                    "record it again with: pytest --update-goldens",
                    pytrace=False,
                )
            report = goldens.replay_golden(subject, path, holds)
        except AgentNbError as error:
            pytest.fail(f"golden {name!r} cannot be replayed:\n{error}", pytrace=False)
        if not report.ok:
            pytest.fail(str(report), pytrace=False)
        return report

    return replay
