//! Studies of many runs: whether papers' claims hold, who wins against whom, where hosts differ.
//!
//! ```
//! let (paper, claims) = knee_lab::reproduce::load("chd").expect("it is compiled in");
//! assert_eq!(paper.id, "chd");
//! assert!(claims.iter().any(|claim| !claim.holds)); // claims that do not hold are recorded too
//! ```

pub mod compare;
pub mod duel;
mod error;
pub mod evaluate;
pub mod figure;
pub mod files;
pub mod pipeline;
pub mod reproduce;

pub use error::{FileError, LabError};
