//! What every algorithm must hold to: one built in, by the tests of `knee-cc` and `knee-sim`, and by
//! `knee vm matrix` on each kernel; one of a user's own, by `knee test`.

pub mod duels;
pub mod invariants;
pub mod replay;
pub mod transfer;
