"""What is written, and how: the ring, its layouts, and the guard that keeps errors of ours from the program."""
