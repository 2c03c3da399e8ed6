"""Prop-SP (Euro-Par 2014 workshops), reproduced by its analytical model and in simulation."""
