"""What is loaded before the training is not pinned, its batches are."""
# fixture: tier kernel
# fixture: copies checkpoint
