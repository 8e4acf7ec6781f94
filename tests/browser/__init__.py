"""Tests that drive chromium: one browser and one cluster for all of them."""
