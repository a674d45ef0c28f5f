"""The loss is asked for in each step."""
# fixture: tier kernel
# fixture: copies item
