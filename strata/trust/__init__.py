"""Who is calling, and what each caller may do: one table that every server asks. Standard library only."""
