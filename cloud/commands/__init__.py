"""Command groups of the cloud, loaded through the entry-point group `podium.commands`."""
