//! Metrics of a run, limits of its worth, and storage.
//!
//! ```
//! use knee_results::metrics::{Percentiles, jain};
//!
//! let goodputs = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
//! assert_eq!(Percentiles::of(goodputs).map(|p| (p.p20, p.p50, p.p80)), Some((2.0, 3.5, 5.0)));
//! assert_eq!(jain(&[3.0, 3.0]), Some(1.0));
//! assert_eq!(jain(&[6.0, 0.0]), Some(0.5));
//! ```

pub use knee_metrics as metrics;

#[cfg(feature = "arrow")]
pub mod arrow;
pub mod caveats;
pub mod column;
mod error;
pub mod kept;
mod pages;
pub mod parquet;
pub mod replay;
pub mod store;
pub mod summary;
pub mod tables;
pub mod trace;

pub use error::ResultsError;
