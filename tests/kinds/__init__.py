"""The same facts about every kind of model, and a third kind that is nothing but its own folder."""
