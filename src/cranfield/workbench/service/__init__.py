"""The service: named test sets and runs, jobs that evaluate and compare, stored results, metrics, schedules; no pages, no HTTP."""
