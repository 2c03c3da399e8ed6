//! What is found of computers, on trees of files that look like theirs.

mod capabilities;
mod classes;
mod energy;
mod machines;
mod tree;
