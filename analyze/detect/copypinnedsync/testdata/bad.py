"""Pinned, and waited for."""
# fixture: tier kernel
# fixture: copies waits
