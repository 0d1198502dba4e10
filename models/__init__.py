"""Layer-normalised recurrent networks in PyTorch: nouns only, no files and no flags."""
