"""Pinned, and cast on the CPU."""
# fixture: tier kernel
# fixture: copies cast
