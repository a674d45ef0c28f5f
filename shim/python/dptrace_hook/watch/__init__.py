"""What is patched, one file for each thing that is watched. dataloader.py is where it begins."""
