"""JSON that can be read in one way only, in each place that reads some."""

import json

import pytest

from chatsite.contrib.endpoint.apis.named_objects import has_other_case
from chatsite.contrib.mcp import mcp_config
from chatsite.features.importing.files.reading import ImportFileError, decode_json
from chatsite.strict_json import RepeatedNameError, make_object


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 1}', '[{"b": {"a": 1, "\\u0061": 2}}]', '{"a":{},"a":{}}']
)
def test_name_twice_is_refused(text):
    with pytest.raises(RepeatedNameError, match="^a$"):
        json.loads(text, object_pairs_hook=make_object)


def test_object_with_many_names_costs_linear_time():
    pairs = [(str(number), 0) for number in range(300_000)]
    with pytest.raises(RepeatedNameError, match="^299999$"):
        make_object([*pairs, pairs[-1]])


def test_names_of_several_objects_may_be_the_same():
    text = '{"a": {"a": [{"a": 1}, {"a": 2}]}, "A": {}}'
    assert json.loads(text, object_pairs_hook=make_object) == json.loads(text)


@pytest.mark.parametrize(
    ("name", "is_other"),
    [("model", False), ("Model", True), ("MODEL", True), ("models", False)],
)
def test_other_case_is_noticed(name, is_other):
    assert has_other_case(name, frozenset({"model"})) is is_other


def test_import_with_a_name_twice_loses_no_value():
    text = b'{"messages": [{"text": "first", "text": "second"}]}'
    with pytest.raises(ImportFileError, match="'text' twice in one object"):
        decode_json(text)


def test_file_of_mcp_servers_with_a_name_twice_is_refused(tmp_path):
    server = '"files": {"command": "true"}'
    path = tmp_path / "servers.json"
    path.write_text(f'{{"mcpServers": {{{server}, {server}}}}}')
    servers, problem = mcp_config._load(str(path))
    assert servers == []
    assert "files" in problem
    assert "RepeatedNameError" in problem
