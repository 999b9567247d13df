//! Scenarios over real QUIC connections.
//!
//! [`run`] takes the [`RunSpec`] that the other hosts take; each of its TCP flows becomes a QUIC
//! connection of quinn: its endpoints, connections, TLS, loss detection and pacing, with Knee's
//! algorithms by [`knee_quic`]. quinn's core does no I/O and reads no clock, so that its datagrams
//! can pass the path that simulator and testbed use in virtual time. The same spec gives the same
//! [`RunRecord`].
//!
//! - `terms`: a flow's options in quinn's terms, and the limits of QUIC.
//! - `peer`: the two ends of a connection, [`Sender`] and [`Receiver`]: they know neither sockets
//!   nor clocks either, so that the testbed can drive them over real UDP.
//! - `tls`: the certificate.
//! - `calls`: actions of the algorithm.
//! - `connection`: the ends of a connection in virtual time.
//! - `qlog`: files for qvis and the like.
//!
//! Differences from TCP in a record: a flow opens its connection at its start and sends data one round trip
//! later, and a transfer's time includes that; its handshake passes the path and counts. A flow that stops
//! closes its connection, with a packet at most, and repairs no more. Packets are numbered in the order of
//! sending. QUIC never sends a packet again: `retransmitted_pkts` counts the packets that quinn took for
//! lost, whose data went into new ones; `duplicate_pkts` is 0. `loss_events` are the reductions, once per
//! round trip at most; `timeouts` are those for persistent congestion, not probe timeouts.

mod calls;
mod connection;
mod error;
mod peer;
mod qlog;
mod terms;
mod tls;

pub use calls::{Called, Calls};
pub use error::Failed;
pub use peer::{Maker, Out, Receiver, Sender};
pub use qlog::Qlog;
pub use quinn_proto::EcnCodepoint;
pub use terms::Terms;

use knee_cc::contain;
use knee_model::{Host, HostError, RunOptions, RunRecord, RunSpec, Tell, failure::unsupported};

/// Like [`run_with`], with nothing optional.
///
/// # Errors
/// The errors of [`run_with`].
pub fn run(spec: &RunSpec) -> Result<RunRecord, HostError> {
    run_with(spec, &RunOptions::default())
}

/// Runs `spec` over QUIC in virtual time. The only option used is the qlog.
///
/// # Errors
/// A requirement of the spec that QUIC cannot meet, or a failure.
pub fn run_with(spec: &RunSpec, options: &RunOptions) -> Result<RunRecord, HostError> {
    run_telling(spec, options, &|_| ())
}

fn run_telling(
    spec: &RunSpec,
    options: &RunOptions,
    tell: Tell<'_>,
) -> Result<RunRecord, HostError> {
    let prepared = connection::Prepared::new(spec)?;
    contain(|| prepared.run(options, tell))?
}

/// QUIC in virtual time as a [`Host`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Quic;

impl Host for Quic {
    fn name(&self) -> &'static str {
        "quic"
    }

    fn about(&self) -> &'static str {
        "QUIC: each TCP flow becomes a connection of quinn, in virtual time"
    }

    fn doing(&self) -> &'static str {
        "running over QUIC"
    }

    fn check(&self, spec: &RunSpec, options: &RunOptions) -> Result<(), HostError> {
        can_keep(options)?;
        connection::Prepared::new(spec).map(drop)
    }

    fn run_with_progress(
        &self,
        spec: &RunSpec,
        options: &RunOptions,
        tell: Tell<'_>,
    ) -> Result<RunRecord, HostError> {
        can_keep(options)?;
        run_telling(spec, options, tell)
    }
}

/// Rejects unsupported capture options.
fn can_keep(options: &RunOptions) -> Result<(), HostError> {
    if options.pcap.is_none() {
        return Ok(());
    }
    let why = "QUIC in virtual time has no interface on which to capture packets";
    let help = "add --host kernel, or record the connections' events with --qlog";
    Err(unsupported(why).with_help(help))
}
