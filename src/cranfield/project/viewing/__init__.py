"""Reports in a browser: which files of a folder are reports, a server for them on this machine, the browser itself."""
