//! What several policies share.

pub mod critical;
pub mod lists;
pub mod loops;
