//! What `make attack` is made of: things that are made at random, and judges of them who look from outside.
//!
//! Everything follows from a seed and a number, so that whatever fails can be repeated alone.

#[cfg(feature = "simulations")]
pub mod campaign;
pub mod dice;
pub mod formats;
pub mod mutate;
pub mod panics;
#[cfg(feature = "simulations")]
pub mod references;
pub mod rounds;
pub mod shipped;
pub mod work;
