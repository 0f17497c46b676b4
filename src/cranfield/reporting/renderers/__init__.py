"""One file for each form a Document can take. They depend on `cranfield.reporting.document` alone."""
