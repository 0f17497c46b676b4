"""What the commands of golden sets do: assembly and review."""
