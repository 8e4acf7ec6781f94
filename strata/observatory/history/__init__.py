"""What the store holds, read back, edited and watched for rows of others."""
