//! Scenarios, what is measured of a run, how it is kept and shown, and whether papers' claims hold.

pub mod chart;
pub mod compare;
pub mod drawing;
pub mod duel;
pub mod kept;
pub mod metrics;
pub mod parquet;
pub mod replay;
pub mod report;
pub mod reproduce;
pub mod run_report;
pub mod scenario;
pub mod store;
pub mod summary;
pub mod table;
#[cfg(test)]
mod testing;
pub mod trace;
mod traffic;
pub mod units;
