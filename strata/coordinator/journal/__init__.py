"""Where events become durable before anybody is answered."""
