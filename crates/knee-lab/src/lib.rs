//! Scenarios, what is measured of a run, and how it is kept and shown.

pub mod chart;
pub mod metrics;
pub mod parquet;
pub mod report;
pub mod run_report;
pub mod store;
pub mod summary;
pub mod table;
#[cfg(test)]
mod testing;
