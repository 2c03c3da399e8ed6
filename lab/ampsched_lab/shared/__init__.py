"""What every row of the laboratory uses: conditions, constants, claims and verdicts, tables, figures, pages."""
