"""The paper's claims and the pen's legibility, measured. Nothing imports it."""
