"""How far policies are from the best schedule, on cases that are small enough to search it."""
