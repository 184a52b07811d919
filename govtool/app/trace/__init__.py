"""Questions about the rows of recorded runs: traces through all runs, affected rows, replays."""
