"""Finds a text among bytes in which HTTP/2 wrote header fields in the code of Huffman (RFC 7541, appendix B).

Only the characters of names and tokens; enough to look for a text wherever it begins, without reading the fields.
"""
# Each row: the length of its codes, the first of them, and the characters in their order.
ROWS = (
    (5, 0x0, "012aceiost"),
    (6, 0x14, " %-./3456789=A_bdfghlmnpru"),
    (7, 0x5C, ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"),
    (8, 0xF8, "&*,;XZ"),
)
CODES = {letter: format(first + at, f"0{length}b") for length, first, letters in ROWS for at, letter in enumerate(letters)}


def is_in(text, data):
    """Whether `text` stands in `data`, as it is or in that code."""
    if text.encode() in data:
        return True
    return "".join(CODES[letter] for letter in text) in format(int.from_bytes(data, "big"), f"0{len(data) * 8}b")
