"""Where agents run: in this process, or on the device a request came from."""
