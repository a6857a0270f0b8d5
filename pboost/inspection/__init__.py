"""What one asks of builders and models: validation, explanations, importances, margins."""
