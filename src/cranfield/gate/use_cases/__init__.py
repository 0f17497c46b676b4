"""What the commands of the gate do."""
