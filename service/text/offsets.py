"""Where in the text of a completion each byte lies: OpenAI's `text_offset`, in characters."""

import codecs


class TextOffsets:
    """Follows the bytes of a completion one by one, in whatever pieces they are handed out.

    All bytes of a character share its offset, and one that is not UTF-8 is the character U+FFFD.
    The text begins with the bytes that were `undecided` when the state before it was taken: they
    go on in the first of these, unless a prompt comes `between`.
    """

    def __init__(self, undecided: bytes, *, between: bool) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._at = len(undecided.decode("utf-8", "replace")) if between else 0
        if not between:
            for byte in undecided:
                self.of(byte)

    def of(self, byte: int) -> int:
        """The offset of the next byte."""
        if self._decoder.getstate()[0] == b"\xed" and 0xA0 <= byte <= 0xBF:
            # Half of a UTF-16 pair: two characters, though the decoder holds them back for a third.
            self._decoder.reset()
            self._at += 2
            return self._at - 1
        pending = len(self._decoder.getstate()[0])
        text = self._decoder.decode(bytes([byte]))
        left = len(self._decoder.getstate()[0])
        if pending and left <= pending and (left or len(text) > 1):
            self._at += 1  # the character before was broken off; this byte begins another
        offset = self._at
        if not left:
            self._at += 1
        return offset
