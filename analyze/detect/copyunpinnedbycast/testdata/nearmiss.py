"""Pinned, and cast on the device."""
# fixture: tier kernel
# fixture: copies cast_later
