"""Who is there, and what they may: one table that every door asks. Standard library only."""
