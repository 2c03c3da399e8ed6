"""The laboratory of ampsched: it measures, judges and writes the reports. See README.md beside the package."""
