//! Independent oracles: what the papers and RFCs say, computed again in floating point from their
//! equations, and compared with each decision of the C on random connections.
//!
//! One module per algorithm holds the oracle, with the equation's number at each line, and its
//! tests. An oracle gets what the C gets (connection and ACK) and says what the window must be. It
//! keeps its own estimates, so that an error in any of them shows. What is not in these sequences
//! (timeouts, undo, idle times, marks) is in the files of tests beside this folder.
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
