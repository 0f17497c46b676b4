"""Models and agents behind one protocol: backends, record and replay."""
