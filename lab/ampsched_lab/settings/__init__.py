"""Does `ampsched advise` find the best setting? Every setting is tried in exact virtual machines."""
