//! What is measured of a run, what limits its worth, and how it is kept.

pub mod caveats;
pub mod kept;
pub mod metrics;
pub mod parquet;
pub mod replay;
pub mod store;
pub mod summary;
pub mod tables;
pub mod trace;
