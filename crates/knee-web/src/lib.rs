//! The simulator for the lab in a browser: scenarios, runs, and data for charts.
//!
//! [`Session::answer`] takes a request in JSON and gives an [`Answer`]: JSON, and numbers for the charts.
//! It is the same on every target; `abi` is all that WebAssembly adds. The page's side of the protocol is
//! `web/src/protocol.ts`.

#[cfg(target_family = "wasm")]
mod abi;
mod catalogue;
mod document;
mod error;
mod events;
#[cfg(not(target_family = "wasm"))]
mod live;
#[cfg(not(target_family = "wasm"))]
mod page;
mod series;
mod session;
mod statistics;
mod theory;

pub use error::Refusal;
#[cfg(not(target_family = "wasm"))]
pub use page::page;
pub use session::{Answer, Session, Watch, spec_to_draw};
