"""A real kernel with a cockpit in it, spoken to as a front end does, without a browser."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import time
from contextlib import contextmanager

from jupyter_client.manager import KernelManager

VERSIONS = ("6.31.0", "7.3.0", "7.4.0")
PATIENCE = 60  # seconds; a loaded machine is slow to start a kernel, and a test that waits so long has failed


def installed(version, folder):
    """Put a version of ipykernel into a folder of its own; return the folder, for PYTHONPATH."""
    target = folder / version
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--target", str(target), f"ipykernel=={version}"], check=True)
    return target


@contextmanager
def kernel(home, version_folder=None):
    """Start a kernel with settings of its own under `home`; yield it."""
    paths = [str(folder) for folder in (version_folder, os.environ.get("PYTHONPATH")) if folder]
    environment = {**os.environ, "IPYTHONDIR": str(home / "ipython"), "PYTHONPATH": os.pathsep.join(paths)}
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(env=environment, stdin=subprocess.DEVNULL)
    try:
        client = manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=PATIENCE)
        yield Kernel(client)
        client.stop_channels()
    finally:
        manager.shutdown_kernel(now=True)
        manager.context.destroy(linger=0)


class Kernel:
    """What a front end has of a kernel: cells, and messages to widgets.

    `subshell` is the id that messages to widgets carry, where they go over one; JupyterLab does that, others do not.
    `states` are the cockpits' states by the ids of their comms, put together from what was sent.
    """

    def __init__(self, client):
        self.client, self.subshell, self.states = client, None, {}
        self._ended, self._texts, self._number = {}, {}, 0

    def _take(self, message):
        kind, content = message["msg_type"], message["content"]
        parent = message["parent_header"].get("msg_id")
        if kind == "comm_msg" and content["data"].get("method") == "custom":
            message_content = content["data"]["content"]
            self.states.setdefault(content["comm_id"], {}).update(message_content.get("changed", {}))
        elif kind == "stream":
            self._texts[parent] = self._texts.get(parent, "") + content["text"]
        elif kind == "error":
            raise AssertionError(f"{content['ename']}: {content['evalue']}")
        elif kind == "status" and content["execution_state"] == "idle":
            self._ended[parent] = True

    def until(self, holds):
        """Take what the kernel sends until something holds; fail where it does not for a long time."""
        end = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > end:
                raise AssertionError(f"nothing more came: {self.states}")
            try:
                self._take(self.client.get_iopub_msg(timeout=0.5))
            except queue.Empty:
                continue

    def run(self, code):
        """Run a cell, wait for its end, and return what it printed."""
        request_id = self.client.execute(code)
        self.until(lambda: request_id in self._ended)
        return self._texts.pop(request_id, "").strip()

    def open_subshell(self):
        """Open a subshell for messages to widgets; say whether this kernel has any."""
        message = self.client.session.msg("create_subshell_request")
        self.client.control_channel.send(message)
        try:
            reply = self.client.get_control_msg(timeout=3 if self._old() else PATIENCE)
        except queue.Empty:
            return False
        self.subshell = reply["content"].get("subshell_id")
        return self.subshell is not None

    def _old(self):
        return int(self.run("import ipykernel; print(ipykernel.version_info[0])")) < 7

    def ask(self, comm, verb, value=None, target=None):
        """Press a button: send a cockpit what its page would send."""
        self._number += 1
        content = {"do": verb, "value": value, "target": target, "view": "test", "number": self._number}
        data = {"method": "custom", "content": content}
        message = self.client.session.msg("comm_msg", {"comm_id": comm, "data": data})
        if self.subshell is not None:
            message["header"]["subshell_id"] = self.subshell
        self.client.shell_channel.send(message)
