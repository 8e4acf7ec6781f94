"""Who is calling, what each caller may do (one table that every server asks), and how the two sides know each other."""
