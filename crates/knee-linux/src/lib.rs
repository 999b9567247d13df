//! Linux in exact virtual time, as a host: a kernel of User-Mode Linux whose clock stops while it computes.
//!
//! Both ends of each flow are sockets inside the kernel, and the path between them is Knee's own
//! (`crates/knee-linux-guest`), linked into the kernel. There is no user space. A kernel is built once
//! ([`build`]) and kept in the cache.

#[path = "../../knee-vm/src/apt.rs"]
mod apt;
mod cache;
mod check;
mod choice;
mod host;
mod kernels;
mod machine;
#[path = "../../knee-linux-guest/src/message.rs"]
mod message;
mod parts;
#[path = "../../knee-vm/src/places.rs"]
mod places;
mod tree;

pub use cache::{About, Kernel, Listed, Remove, clean, limit_bytes, list};
pub use choice::KernelChoice;
pub use host::Linux;
pub use kernels::build;
