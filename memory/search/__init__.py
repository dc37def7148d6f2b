"""Search in messages: recall for the model, search for users."""
