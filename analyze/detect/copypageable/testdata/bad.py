"""Blocking copies of batches that are not pinned."""
# fixture: tier kernel
# fixture: copies pageable
