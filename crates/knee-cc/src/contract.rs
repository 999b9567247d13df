//! The calls of an algorithm, and the data that they pass.

#[cfg(can_load)]
use crate::OBSERVE_N;
use crate::STATE_MAX_BYTES;
#[cfg(can_load)]
use crate::ffi::{Ack, Conn};
use serde::{Deserialize, Serialize};
use std::array::TryFromSliceError;

/// Owner of the window (`enum cc_profile`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// The stack during recovery and after timeouts, the algorithm else.
    Classic,
    /// The algorithm in every phase, and the pacing rate. `on_ack` is called for every ACK, `on_rtt`
    /// and [`Event::Recovered`] never.
    Rate,
}

/// Phase of the stack, numbered as Linux's `icsk_ca_state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Nothing suspicious.
    #[default]
    Open = 0,
    /// Duplicate ACKs or SACKs, no loss inferred yet.
    Disorder = 1,
    /// Window being reduced for a congestion mark.
    Cwr = 2,
    /// Fast recovery.
    Recovery = 3,
    /// After a retransmission timeout.
    Loss = 4,
}

/// Events other than ACKs (`enum cc_event`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Event {
    /// First transmission after everything was acknowledged.
    TxStart = 0,
    /// Idle for longer than the RTO: the stack restarted the window.
    CwndRestart = 1,
    /// Fast recovery ended.
    Recovered = 2,
    /// Retransmission timeout; `ssthresh` was just called.
    Rto = 3,
}

/// An algorithm's memory of one connection, as its bytes; those after `Algorithm::state_bytes` are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u8>", into = "Vec<u8>")]
#[repr(C, align(8))]
pub struct State(pub(crate) [u8; STATE_MAX_BYTES]);

impl From<State> for Vec<u8> {
    fn from(state: State) -> Self {
        state.0.to_vec()
    }
}

impl TryFrom<Vec<u8>> for State {
    type Error = TryFromSliceError;

    fn try_from(bytes: Vec<u8>) -> Result<Self, TryFromSliceError> {
        bytes.as_slice().try_into().map(Self)
    }
}

impl Default for State {
    fn default() -> Self {
        Self([0; STATE_MAX_BYTES])
    }
}

impl From<[u8; STATE_MAX_BYTES]> for State {
    fn from(bytes: [u8; STATE_MAX_BYTES]) -> Self {
        Self(bytes)
    }
}

impl State {
    /// The bytes, in the order of this machine.
    pub fn bytes(&self) -> &[u8; STATE_MAX_BYTES] {
        &self.0
    }
}

impl Event {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::TxStart, Self::CwndRestart, Self::Recovered, Self::Rto];
}

/// One of an algorithm's functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum Call {
    /// `init`.
    #[default]
    Init = 0,
    /// `on_rtt`.
    OnRtt = 1,
    /// `on_ack`.
    OnAck = 2,
    /// `ssthresh`.
    Ssthresh = 3,
    /// `on_event`.
    OnEvent = 4,
    /// `undo`.
    Undo = 5,
}

impl Call {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::Init, Self::OnRtt, Self::OnAck, Self::Ssthresh, Self::OnEvent, Self::Undo];

    /// The call that every ACK makes, with its RTT sample.
    pub fn of_every_ack(profile: Profile) -> Self {
        match profile {
            Profile::Classic => Self::OnRtt,
            Profile::Rate => Self::OnAck,
        }
    }

    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::OnRtt => "on_rtt",
            Self::OnAck => "on_ack",
            Self::Ssthresh => "ssthresh",
            Self::OnEvent => "on_event",
            Self::Undo => "undo",
        }
    }
}

/// The subject of a call.
#[cfg(can_load)]
#[derive(Clone, Copy, Debug)]
pub enum About<'a> {
    /// Nothing more than the connection.
    Connection,
    /// An ACK.
    Ack(&'a Ack),
    /// An event.
    Event(Event),
}

/// The cause of a failed call: the function as its author knows it, and its fault, as in
/// `("on_ack", "raised ...")`.
#[cfg(can_load)]
pub type Failure = (&'static str, String);

/// Functions that may fail. Their state lies wherever they keep it; in [`State`] they can keep a
/// number by which they find it.
#[cfg(can_load)]
pub trait Callee: Send + Sync {
    /// Makes a call; gives the result of `ssthresh` and `undo`, of the others anything.
    ///
    /// # Errors
    /// The run ends with [`crate::Broken`].
    fn call(
        &self,
        call: Call,
        about: About<'_>,
        params: &[u32],
        state: &mut State,
        conn: &mut Conn,
    ) -> Result<u32, Failure>;

    /// Internals worth plotting.
    ///
    /// # Errors
    /// The errors of [`Callee::call`].
    fn observe(&self, params: &[u32], state: &State) -> Result<[u32; OBSERVE_N], Failure>;
}
