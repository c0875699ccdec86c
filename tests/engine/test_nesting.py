from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import asyncio, warnings
warnings.simplefilter("ignore")
import agentnb as nb
async def main():
    try:
        asyncio.run(asyncio.sleep(0))
    except RuntimeError:
        print("refused")
    print(nb.enable_nesting())
    asyncio.run(asyncio.sleep(0))
    print("nested")
asyncio.run(main())
"""


def test_a_loop_can_be_run_inside_another_once_it_is_asked_for():
    # In a process of its own: it changes asyncio for good.
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent.parent.parent,
    )
    assert done.returncode == 0, done.stderr
    refused, name, nested = done.stdout.split()
    assert (refused, name in {"nest_asyncio", "nest_asyncio2"}, nested) == ("refused", True, "nested")
