"""Programs recorded on this computer, predicted for other machines, and run there in exact virtual machines."""
