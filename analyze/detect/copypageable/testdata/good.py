"""Pinned, and not waited for."""
# fixture: tier kernel
# fixture: copies good
