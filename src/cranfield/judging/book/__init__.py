"""From a book to a test set: grades by precedence, consensus and sensitivity to it, frozen versions, import and export."""
