//! Real Linux TCP in virtual time: [`Vm`] is a [`knee_model::Host`].
//!
//! A run takes place in a virtual machine: a Debian kernel, and this very program as its first
//! process, which makes the run as on a real machine's kernel (`knee_testbed`). The machine's clock
//! counts instructions, and passes over idle time. So no run is ever late, whatever else the real
//! machine does; the same run gives the same bytes; and no privileges are needed.
//!
//! - `kernels`: which there are, and how to get one.
//! - `initramfs`: the guest's file system.
//! - `machine`: one QEMU process.
//! - `snapshots`: a guest boots once; all its runs start from there.
//! - `remembered`: the hash of a file's contents, as long as it has not changed.
//! - `guest`: this program's work inside.
//! - `ports`, `message`: the two sides' messages to each other.

mod apt;
pub mod guest;
mod host;
mod initramfs;
pub mod kernels;
mod machine;
mod message;
mod places;
mod ports;
mod remembered;
mod snapshots;

pub use host::Vm;
pub use kernels::{Kernel, KernelChoice, Series};
