"""How threads on different cores slow each other down: simulations beside caches, and beside published figures."""
