"""The embedded demo: the installed Python standard library as a corpus, two systems that search it, and a test set."""
