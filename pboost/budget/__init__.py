"""Models and predictions within a cost budget: early exits, distillation and acquisition."""
