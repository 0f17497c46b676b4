"""One file per report: results in, a Document out."""
