"""One file for each form a Document can take. They know `cranfield.reporting.document`, and nothing of what it reports on."""
