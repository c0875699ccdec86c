from __future__ import annotations

import pytest

from agentnb.world.tools.allow_list import Allowed, is_dotted, resolve_path


def test_a_package_is_allowed_with_its_submodules_and_not_by_prefix():
    allowed = Allowed.of(None, ["mytools", "other.web"])
    fine = ["mytools", "mytools.sub", "mytools.sub.more", "other.web", "other.web.x"]
    assert [name for name in fine if not allowed.holds_package(name)] == []
    evil = [
        "mytools_evil",
        "mytoolsx.sub",
        "other",
        "other.webs",
        "os",
        "builtins",
        "subprocess",
        "",
        "Mytools",
        ".mytools",
    ]
    assert [name for name in evil if allowed.holds_package(name)] == []


@pytest.mark.parametrize("word", ["", "  ", ".", "..", "./x", "a/b", "my-tools", "mytools.", "*", "mytools.*"])
def test_an_invalid_package_name_allows_nothing(word):
    assert Allowed.of(None, [word]).packages == ()


def test_an_empty_string_allows_no_folder():
    assert Allowed.of(None, ["", " "]).folders == ()


def test_a_folder_is_allowed_with_its_content(tmp_path):
    own_folder, shared = tmp_path / "own", tmp_path / "shared"
    for folder in (own_folder, shared, tmp_path / "shared2"):
        folder.mkdir()
    allowed = Allowed.of(own_folder, [str(shared), str(tmp_path / "not there")])
    assert Allowed.of(str(own_folder), []).recipe_folder == allowed.recipe_folder
    assert allowed.holds_file(own_folder / "x.py")
    assert allowed.is_own(own_folder / "a" / "x.py")
    assert allowed.holds_file(shared / "a" / "x.py")
    assert not allowed.is_own(shared / "x.py")
    assert not allowed.holds_file(tmp_path / "shared2" / "x.py")
    assert not allowed.holds_file(tmp_path / "x.py")


def test_symbolic_links_are_resolved(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert Allowed.of(tmp_path / "link", []).recipe_folder == (tmp_path / "real").resolve()
    assert Allowed.of(None, [str(tmp_path / "link")]).folders == ((tmp_path / "real").resolve(),)


@pytest.mark.parametrize("text", ["a\0b", "x" * 5000])
def test_an_invalid_path_allows_nothing(text):
    allowed = Allowed.of(None, [text, f"/{text}"])
    assert allowed.folders == ()


def test_a_path_with_a_null_character_is_invalid(tmp_path):
    assert resolve_path(tmp_path / "a\0b") is None
    assert is_dotted("a.b")
    assert not is_dotted("a..b")
