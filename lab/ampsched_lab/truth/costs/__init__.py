"""Checks of single mechanisms that cost time or power, each against measurements that did not set it."""
