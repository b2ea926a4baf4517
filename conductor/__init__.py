"""Plan, run, judge: everything between a request and its checked answer."""
