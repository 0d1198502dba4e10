"""What belongs to readers alone."""
