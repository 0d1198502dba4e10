"""The raw outputs of a pen: how many, in which order, and the limits on the Gaussians they make.

Of M Gaussians: the logit of lifting the pen, M logits of their weights, then M each of the means in
x and in y, of the log sigmas in x and in y, and of the tilts before their tanh (Graves 2013, eq.
18-22). Units are those of the ink.
"""

# Pen noise lies between: a narrower Gaussian fits the grid of a tablet, not a hand.
LOG_SIGMA = (-4.0, 4.0)
# tanh(5) = 0.9999: past it 1 - rho^2 has no digits left in float32.
STEEPEST_TILT = 5.0


def outputs_of(mixtures: int) -> int:
    """R: how many raw outputs `mixtures` Gaussians need."""
    return 6 * mixtures + 1
