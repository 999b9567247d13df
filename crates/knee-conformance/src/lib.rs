//! Requirements for every algorithm. Built-in algorithms are tested by `knee-cc` and `knee-sim`, and by `knee
//! vm matrix` on each kernel; a user's own by `knee test`.

pub mod duels;
pub mod invariants;
pub mod replay;
pub mod transfer;
