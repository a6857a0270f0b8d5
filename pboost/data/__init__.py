"""X, y and weights as the searches read them: arguments checked, columns sorted or binned."""
