"""Files read and written, with no view on what they mean. `sniff` tells the format of a file; `registry` describes one."""
