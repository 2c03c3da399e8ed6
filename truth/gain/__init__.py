"""What a policy gains in a real kernel, beside what the simulator says; see docs/reports/live/report.md."""
