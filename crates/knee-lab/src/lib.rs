//! To come.

pub mod scenario;
pub mod units;
