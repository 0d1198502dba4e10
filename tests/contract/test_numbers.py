"""Numbers that artifacts which are there were made with: with others, they say something else."""

from contract import alphabets, integers, mixture, pieces, strokes
from contract.reader import PieceUnits
from models.norms import EPSILON


def test_text_is_numbered_and_as_long_as_artifacts_have_it() -> None:
    assert alphabets.START_TOKEN == 10
    assert alphabets.WINDOW_SYMBOLS == 64
    assert (alphabets.LONGEST_TEXT, alphabets.LONGEST_LINE) == (60, 44)


def test_networks_compute_with_the_limits_of_artifacts() -> None:
    assert EPSILON == 2**-17
    assert mixture.LOG_SIGMA == (-4, 4)
    assert mixture.STEEPEST_TILT == 5
    assert integers.LARGEST_INPUT == 256


def test_ink_is_in_the_units_of_artifacts() -> None:
    assert strokes.POINTS_PER_CHARACTER == 10
    assert strokes.UNITS_OF_SIZE == 1.5
    assert (strokes.UNITS_PER_CHARACTER, strokes.UNITS_PER_LINE) == (4.65, 14)
    assert strokes.LONGEST_OFFSET == 25
    assert (pieces.PIECE_UNITS, pieces.PIECE, pieces.RESTS) == (4, 12, 4)


def test_a_reader_that_says_nothing_of_it_reads_strokes_in_the_order_they_were_drawn() -> None:
    assert not PieceUnits().reordered
