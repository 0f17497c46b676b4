"""Search engines called from this process: `searcher` of each module creates one."""
