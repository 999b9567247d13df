//! Knee's algorithms in the running Linux kernel.
//!
//! Each file of `cc/algorithms/` is compiled for BPF when this crate is built. [`load`] puts the
//! parameters and a name into such an object and registers it as a congestion control of the
//! kernel; any socket of the machine may then use it by that name (`TCP_CONGESTION`). Variants with
//! other parameters can be loaded side by side under other names. [`check`] reports what the kernel lacks.
//!
//! Everything here acts on the whole machine, and needs root or the capabilities that [`check`]
//! names. No setting of the machine is changed, except that [`Loaded::persist`] mounts a BPF file
//! system on `/sys/fs/bpf` where there is none.
//!
//! ```
//! let report = knee_kernel::check(); // needs no privileges
//! println!("{report}");
//! ```

mod check;
#[path = "../clang.rs"]
mod clang;
mod error;
mod object;
mod pins;
mod tracer;
mod variants;

pub use check::{Finding, Report, State, check, skips_programs};
pub use object::{NAME_MAX_BYTES, compiled, default_name, export, give_compiled};
pub use tracer::{Filter, SocketId, TracedCall, TracedVariant, Tracer};
pub use variants::{
    Callback, Loaded, Pinned, Variant, list, load, measure, persist, unload, unpersist,
};

/// Folder of the pins, one per variant under its name.
pub const PIN_DIR: &str = "/sys/fs/bpf/knee";
