"""What a rank of each system does when it is told to: one file per system."""
