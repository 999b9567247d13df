//! What is asked of many runs: whether papers' claims hold, who wins against whom, where hosts differ.
//!
//! ```
//! let (paper, claims) = knee_lab::reproduce::load("chd").expect("it is compiled in");
//! assert_eq!(paper.id, "chd");
//! assert!(claims.iter().any(|claim| !claim.holds)); // what does not hold is on record too
//! ```

pub mod compare;
pub mod duel;
pub mod evaluate;
pub mod figure;
pub mod files;
pub mod reproduce;
