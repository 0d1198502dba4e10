"""The same model behind other people's servers, to be measured beside the service."""
