"""Language models served: completions in the words of OpenAI's API, and bytes online."""
