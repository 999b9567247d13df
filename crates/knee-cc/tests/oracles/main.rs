//! Independent oracles: the papers' and RFCs' equations, computed again in floating point, and compared
//! with each decision of the C on random connections.
//!
//! One module per algorithm holds the oracle, with the equation's number at each line, and its tests. An
//! oracle gets the input of the C (connection and ACK) and gives the correct window. It keeps its own
//! estimates, so that an error in any of them shows. Cases outside these sequences (timeouts, undo,
//! idle times, marks) are in the files of tests next to this folder.
//!
//! Each module also compares the C with an oracle of which one constant is wrong, and must find
//! disagreements: the comparison can fail.

mod drive;

mod chd;
mod cubic;
mod delay_aimd;
mod ftcp;
mod hd;
mod htcp;
mod illinois;
mod vegas;
