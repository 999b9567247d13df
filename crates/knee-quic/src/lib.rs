//! The algorithms of Knee for QUIC: [`CongestionControl`] is a factory of congestion controllers
//! for [quinn](https://docs.rs/quinn).
//!
//! ```
//! # use std::sync::Arc;
//! let mut transport = quinn::TransportConfig::default();
//! let chd = knee_quic::CongestionControl::new("chd")?.set("qth", "20ms")?;
//! transport.congestion_controller_factory(Arc::new(chd));
//! # Ok::<(), knee_quic::Error>(())
//! ```
//!
//! `docs/how-to/use-in-quinn.md` is the guide; `docs/explanation/quic-vs-tcp.md` lists the limits of QUIC, or
//! quinn, compared with TCP.

mod algorithm;
mod config;
mod controller;
mod delivery;
mod position;

pub use algorithm::Observer;
pub use config::{CongestionControl, Error};
pub use controller::Controller;
pub use knee_cc::{CallRecord, Params};
