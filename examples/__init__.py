"""Small programs to try Sluicegate with."""
