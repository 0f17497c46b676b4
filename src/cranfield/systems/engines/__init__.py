"""Search engines that are asked from this process: each module's `searcher` makes what answers queries."""
