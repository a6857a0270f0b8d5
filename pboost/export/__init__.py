"""Models in the forms that other tools take: trees, and what is made of them."""
