"""trec_eval's command line, names and output, over this package's engine. Empty: import the module that is needed."""
