"""The experiment of Chronaki et al. (JPDC 2018): threads, loops and tasks on big and little cores."""
