"""Replays: what recorded runs and stored programs would have written over changed inputs."""
