"""A batch class that torch does not look into, and its copies."""
# fixture: tier kernel
# fixture: copies noop
