"""What is said on a forge: one comment on a pull or merge request, kept up to date. Reports are made elsewhere."""
