"""What REST and the event stream answer: one record per noun, and the only place that names its JSON."""
