"""Where rows and keys stand in a file, also where text over several lines looks like a header."""

from tasks.configuration.lines import find_lines

FILE = '''top = 1  # [[kind]] in a comment
[[kind]]
name = "a # no comment [[kind]]"
prompt = """
[[kind]]
name = "within the text"
escaped \\""" still within
"""
model = "m"
[[ "kind" ]]
prompt = \'\'\'one line, """ inside\'\'\'
name = 'b'
[[provider]]
name = """first
last"""
base_url = "x"
'''


def test_headers_in_order_of_the_file() -> None:
    found = find_lines(FILE)
    assert [lines.header for lines in found["kind"]] == [2, 10]
    assert [lines.header for lines in found["provider"]] == [13]


def test_keys_of_each_row() -> None:
    found = find_lines(FILE)
    assert found["kind"][0].keys == {"name": 3, "prompt": 4, "model": 9}
    assert found["kind"][1].keys == {"prompt": 11, "name": 12}
    assert found["provider"][0].keys == {"name": 14, "base_url": 16}


def test_the_part_before_the_first_table() -> None:
    assert find_lines(FILE)[""][0].keys == {"top": 1}
