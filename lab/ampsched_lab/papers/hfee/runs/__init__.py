"""HFEE's experiments, one module each: programs alone, fixed frequencies, the closed loop, the schedulers."""
