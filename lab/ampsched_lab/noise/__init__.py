"""What systems do beside programs, recorded from traces."""
