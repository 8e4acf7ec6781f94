"""One module per page of docs/reference: each renders what the code says."""
