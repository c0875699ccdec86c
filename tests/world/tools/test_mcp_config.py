from __future__ import annotations

import sys

import pytest

from agentnb.errors import RecipeError
from agentnb.secrets import mask_text
from agentnb.world.tools import mcp_config
from agentnb.world.tools.allow_list import Allowed
from agentnb.world.tools.mcp_config import get_tool_name, make_settings
from tests.world.tools.tool_samples import spec, write


def settings(config, folder=None, allow=()):
    return make_settings(spec(kind="mcp"), config, Allowed.of(folder, allow))


def wrong(config, folder=None, allow=()):
    with pytest.raises(RecipeError) as caught:
        settings(config, folder, allow)
    return caught.value.problems[0]


@pytest.fixture
def own(tmp_path):
    write(tmp_path, "secret.py", "")
    write(tmp_path, "own/server.py", "")
    write(tmp_path, "own/bin/serve", "")
    (tmp_path / "own/link.py").symlink_to(tmp_path / "secret.py")
    return tmp_path / "own"


@pytest.mark.parametrize("command", ["python", "python3", sys.executable])
def test_a_script_in_the_recipe_folder_runs_with_this_python(own, command):
    started = settings({"command": command, "args": ["server.py", "-v"]}, own)
    assert (started.command, started.args, started.cwd) == (sys.executable, ("server.py", "-v"), str(own))


def test_a_program_in_the_recipe_folder_may_be_started(own):
    assert settings({"command": "bin/serve"}, own).command == str(own / "bin/serve")
    assert settings({"command": "./serve", "cwd": "bin"}, own).command == str(own / "bin/serve")


@pytest.mark.parametrize(
    "config",
    [
        {"command": "bash", "args": ["-c", "id"]},
        {"command": "python", "args": ["-c", "print(1)"]},
        {"command": "python", "args": ["-m", "server.py"]},
        {"command": "python", "args": ["-cprint(1)#.py"]},
        {"command": "python"},
        {"command": "python", "args": ["../secret.py"]},
        {"command": "python", "args": ["link.py"]},
        {"command": "python", "args": ["secret.py"], "cwd": ".."},
        {"command": "../own2/serve"},
        {"command": "/bin/sh", "args": ["server.py"]},
        {"command": "npx", "args": ["server"]},
    ],
)
def test_other_programs_must_be_allowed(own, config):
    problem = wrong(config, own)
    assert problem.code == "R165"
    assert f"pass allow=[{config['command']!r}]" in problem.do
    assert settings(config, own, [config["command"], str(own.parent)]).args == tuple(config.get("args", ()))


VARIABLES = [
    *("PYTHONWARNINGS", "BROWSER", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "PYTHONPATH"),
    *("PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PYTHONUSERBASE", "PATH", "NODE_OPTIONS"),
    *(
        "NODE_PATH",
        "BASH_ENV",
        "ENV",
        "IFS",
        "SHELLOPTS",
        "PERL5OPT",
        "RUBYOPT",
        "JAVA_TOOL_OPTIONS",
        "GIT_SSH_COMMAND",
    ),
    *("GIT_CONFIG_KEY_0", "PAGER", "EDITOR", "PIP_INDEX_URL", "UV_INDEX_URL", "NPM_CONFIG_REGISTRY", "HTTPS_PROXY"),
    *("SSL_CERT_FILE", "OPENSSL_CONF", "GCONV_PATH", "GLIBC_TUNABLES", "HOME", "TMPDIR", "DOCKER_HOST", "COMSPEC"),
    *("npm_config_registry", "ld_preload", "BASH_FUNC_ls%%", "", "A KEY", "X_TOKEN\n", "LD_PRELOAD=x;A_KEY"),
]


@pytest.mark.parametrize("name", VARIABLES)
def test_a_recipe_cannot_set_variables_that_change_what_a_program_runs(own, name):
    config = {"command": "python", "args": ["server.py"], "env": {name: "x", "SEARCH_API_KEY": "k-4713"}}
    problem = wrong(config, own)
    assert problem.code == "R210"
    assert repr(name) in problem.what
    assert settings(config, own, [f"env:{name}"] if name else ["env:"]).command == sys.executable
    assert wrong({**config, "command": "npx"}, own, ["npx"]).code == "R210"


@pytest.mark.parametrize(
    "name",
    ["GITHUB_TOKEN", "GITHUB_PERSONAL_ACCESS_TOKEN", "BRAVE_API_KEY", "SLACK_TEAM_ID", "AWS_SECRET_ACCESS_KEY",
     "AWS_ACCESS_KEY_ID", "AWS_REGION", "JIRA_USERNAME", "DB_PASSWORD", "TZ", "LANG", "LC_ALL", "LOG_LEVEL"],
)  # fmt: skip
def test_common_variables_of_servers_may_be_set(own, name):
    assert settings({"command": "bin/serve", "env": {name: "x"}}, own).env == ((name, "x"),)


def test_every_variable_that_is_not_allowed_is_reported_at_once(own):
    with pytest.raises(RecipeError) as caught:
        settings({"command": "bin/serve", "env": {"LD_PRELOAD": "x", "BROWSER": "y"}}, own)
    assert [problem.code for problem in caught.value.problems] == ["R210", "R210"]


def test_a_server_runs_in_the_recipe_folder_or_an_allowed_one(own, tmp_path):
    (own / "out").symlink_to(tmp_path)
    for cwd in ("..", str(tmp_path), "out", "/"):
        problem = wrong({"command": "npx", "args": ["serve"], "cwd": cwd}, own, ["npx"])
        assert problem.code == "R209"
    assert settings({"command": "npx", "cwd": "bin"}, own, ["npx"]).cwd == str(own / "bin")
    assert settings({"command": "npx", "cwd": ".."}, own, ["npx", str(tmp_path)]).cwd == str(tmp_path)


def test_a_recipe_without_a_folder_starts_nothing_by_itself(own, monkeypatch):
    monkeypatch.chdir(own)
    assert wrong({"command": "python", "args": ["server.py"]}).code == "R165"
    assert settings({"command": "python", "args": ["server.py"]}, None, [str(own)]).command == sys.executable


def test_a_running_server_needs_its_url_only():
    server = settings({"url": " https://host/mcp?key=1 ", "headers": {"X-A": 1}})
    assert (server.url, server.headers, server.command) == ("https://host/mcp?key=1", (("X-A", "1"),), "")
    assert server.title == "https://host/mcp"
    assert settings({"url": "https://ann:pass-4715@host/mcp"}).title.endswith("host/mcp")
    assert "pass-4715" not in settings({"url": "https://ann:pass-4715@host/mcp"}).title


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "has neither `command` nor `url`"),
        ({"command": "a", "url": "http://a/"}, "has both `command` and `url`"),
        ({"url": "file:///a"}, "has an invalid `url`"),
        ({"commnd": "a"}, "has an unknown field 'commnd'"),
        ({"command": ["a"]}, "has an invalid `command`"),
        ({"command": "a", "args": "b"}, "has an invalid `args`"),
        ({"command": "a", "env": ["b"]}, "has an invalid `env`"),
        ({"command": "a", "timeout": 0}, "has an invalid `timeout`"),
        ({"command": "a", "timeout": True}, "has an invalid `timeout`"),
        ({"command": "a\0b"}, "has a null character"),
        ({"command": "a", "args": ["\0"]}, "has a null character"),
    ],
)
def test_a_config_that_names_no_server_is_reported(config, said):
    problem = wrong(config)
    assert problem.code == "R164"
    assert said in problem.what


def test_without_the_sdk_the_problem_says_what_to_install(monkeypatch):
    monkeypatch.setattr(mcp_config, "find_spec", lambda name: None)
    problem = wrong({"url": "http://host/"})
    assert (problem.code, problem.do) == ("R164", 'install it: pip install "agentnb-kit[mcp]"')


def test_secrets_of_a_server_are_masked():
    settings({"url": "http://a/", "headers": {"Authorization": "Bearer abc-4711"}, "env": {"API_KEY": "def-4712"}})
    assert mask_text("Bearer abc-4711 def-4712") == "******** ********"


def test_a_tool_may_have_another_name_on_the_server():
    assert get_tool_name(spec(id="a"), {"tool": "b"}) == "b"
    assert get_tool_name(spec("mcp://server/find", id="a"), {}) == "find"
    assert get_tool_name(spec("", id="a"), {}) == "a"
