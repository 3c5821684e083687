"""The operators that are not one function of torch's, and their gradients: those that this plan's programs use."""
