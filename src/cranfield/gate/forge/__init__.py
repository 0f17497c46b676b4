"""One comment on a pull or merge request of GitHub or GitLab, kept up to date."""
