//! The network: elements without a clock, the path that they form, and the loop that carries out due events.
//!
//! Every element takes the present as an argument and reports when it next has a packet to give; it owns no
//! timer and no thread. The simulator steps the elements in virtual time, the testbed in real time. Times are
//! nanoseconds on the caller's axis; `now_ns` must not decrease from call to call.
//!
//! ```
//! use knee_model::QueueLimit;
//! use knee_net::{Link, Packet, Service};
//!
//! #[derive(Default)]
//! struct FullSize;
//! impl Packet for FullSize {
//!     fn wire_bytes(&self) -> u32 {
//!         1500
//!     }
//! }
//!
//! // 12 Mbit/s: 1 ms for each packet.
//! let mut link = Link::new(Service::constant(12_000_000), QueueLimit::Packets(2));
//! assert!(link.enqueue(0, FullSize).is_ok());
//! assert!(link.enqueue(0, FullSize).is_ok());
//! assert!(link.enqueue(0, FullSize).is_err()); // full: it comes back
//! assert_eq!(link.next_ns(), 1_000_000);
//! let first = link.dequeue(1_000_000).expect("it is due");
//! assert_eq!(first.waited_ns, 0);
//! let second = link.dequeue(2_000_000).expect("it is due");
//! assert_eq!(second.waited_ns, 1_000_000);
//! ```

mod bursts;
mod chance;
mod delay;
mod emission;
mod endpoints;
mod events;
mod flows;
pub mod headers;
mod link;
mod network;
mod overtaking;
mod packet;
mod path;
mod queue;
mod ring;
mod schedule;
mod scripted_loss;
mod service;
mod stream;
mod timed_ring;
mod timers;
mod udp;

pub use bursts::Bursts;
pub use chance::{Jitter, Loss};
pub use delay::DelayLine;
pub use emission::Emission;
pub use endpoints::Endpoints;
pub use flows::{Connection, FlowContext, FlowTimer, VirtualRun, run_in_virtual_time};
pub use link::{Departed, Link};
pub use network::Network;
pub use overtaking::Overtaking;
pub use packet::{Direction, Ecn, End, LostPacket, Numbered, Packet};
pub use path::Path;
pub use queue::Queue;
pub use ring::Ring;
pub use schedule::Schedule;
pub use scripted_loss::ScriptedLoss;
pub use service::Service;
pub use stream::{Arrived, Sequence};
pub use timers::LazyTimer;
pub use udp::UdpFlow;

/// "Nothing is due": the time that an idle element gives.
pub const NEVER: u64 = u64::MAX;
