//! Linux TCP of a distribution's kernel in virtual time: [`Vm`] is a [`knee_model::Host`].
//!
//! A run takes place in a virtual machine: a Debian kernel, and this very program as its first
//! process, which makes the run as on a real machine's kernel (`knee_testbed`). The machine's clock
//! counts instructions, and passes over idle time. So no run is ever late, whatever else the real
//! machine does; the same run gives the same bytes; and no privileges are needed. Each run boots its
//! own machine.
//!
//! - `kernels`, `apt`: which kernels there are, and how to get one.
//! - `initramfs`: the guest's file system.
//! - `machine`: one QEMU process.
//! - `guest`: this program's work inside.
//! - `window`: memory that both see.
//! - `message`: the request and the answer in it.

mod apt;
pub mod guest;
mod host;
mod initramfs;
pub mod kernels;
mod machine;
mod message;
mod places;
mod window;

pub use host::Vm;
pub use kernels::{Kernel, KernelChoice, Series};
