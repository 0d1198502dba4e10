"""The analysis of Ba, Kiros and Hinton (2016), section 5, computed with the modules of training."""
