//! What is asked of many runs: whether papers' claims hold, who wins against whom, where hosts differ.

pub mod compare;
pub mod duel;
pub mod reproduce;
