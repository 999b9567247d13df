//! The algorithms of `cc/`, compiled natively, behind a safe interface.
//!
//! [`algorithms`] is the registry: every file in `cc/algorithms/` is in it. [`Params`]
//! are validated with the algorithm's own table before anything runs. [`Controller`] is one
//! connection's instance; its calls replicate the contract of `cc/include/knee/contract.h`.
//!
//! ```
//! use knee_cc::{Ack, Conn, Controller, Params, SSTHRESH_INFINITE};
//!
//! let newreno = knee_cc::algorithm("newreno").expect("it is in the registry");
//! let mut conn = Conn {
//!     cwnd_pkts: 10,
//!     cwnd_max_pkts: 1000,
//!     ssthresh_pkts: SSTHRESH_INFINITE,
//!     mss_bytes: 1448,
//!     cwnd_limited: 1,
//!     ..Conn::default()
//! };
//! let mut controller = Controller::new(Params::defaults(newreno), &mut conn);
//! let ack = Ack { acked_pkts: 2, rtt_us: 40_000, ..Ack::default() };
//! controller.on_rtt(&mut conn, &ack);
//! controller.on_ack(&mut conn, &ack);
//! assert_eq!(conn.cwnd_pkts, 12); // slow start: one more for each packet acknowledged
//! conn.outstanding_pkts = 12;
//! assert_eq!(controller.ssthresh(&mut conn), 6); // a loss halves what is outstanding
//! ```

mod call;
mod check;
mod contract;
mod controller;
#[cfg(can_load)]
mod define;
#[allow(missing_docs)]
pub mod ffi;
mod guard;
mod load;
mod params;
mod registry;
mod written;

pub use call::CallRecord;
#[cfg(can_load)]
pub use contract::{About, Callee, Failure};
pub use contract::{Call, Event, Phase, Profile, State};
pub use controller::Controller;
#[cfg(can_load)]
pub use define::{Definition, Functions, ParamDefinition, define, define_callee};
pub use ffi::{Ack, Conn};
#[cfg(can_load)]
pub use guard::fault;
pub use guard::{Broken, contain};
pub use load::{LoadError, find, is_file, load, load_text};
#[cfg(can_load)]
pub use load::{load_compiled, numbered, write_sources};
pub use params::{ParamError, Params};
pub use registry::{Algorithm, Param, ParamKind, Rule, RuleOp, Source, algorithm, algorithms};

/// Version of the contract (`CC_CONTRACT_VERSION`).
pub const CONTRACT_VERSION: u32 = 1;
/// A marked-packet round ended.
pub const NOTE_ROUND: u32 = 0x01;
/// The window was reduced because of delay.
pub const NOTE_DELAY_BACKOFF: u32 = 0x02;
/// The delay that decided lay in region B.
pub const NOTE_REGION_B: u32 = 0x04;
/// A loss left the window as it was.
pub const NOTE_LOSS_TOLERATED: u32 = 0x08;
/// `ssthresh` of a connection that has seen no congestion.
pub const SSTHRESH_INFINITE: u32 = 0x7fff_ffff;
/// Largest state of an algorithm, bytes (`icsk_ca_priv` of Linux without the host's part).
pub const STATE_MAX_BYTES: usize = 88;
/// Number of values that an algorithm lets its host observe.
pub const OBSERVE_N: usize = 4;
