"""What policies gain in real kernels, beside what the simulator says; see docs/reports/live/report.md."""
